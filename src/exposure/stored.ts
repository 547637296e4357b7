// Reads what the store keeps as JSON: catalogs and exposures. A text that is not what was written throws a ZodError:
// a defect or a damaged store, never a caller's doing.
import { z } from 'zod'
import type { Catalog } from '../drivers/driver.ts'
import type { ShownTable } from './cut.ts'

const StoredColumn = z.object({
  name: z.string(),
  type: z.string(),
  nullable: z.boolean(),
  primaryKey: z.boolean(),
  references: z.object({ schema: z.string(), table: z.string(), column: z.string() }).nullable(),
  description: z.string().nullable(),
  unexposable: z.string().nullable(),
  partOf: z.string().exactOptional(),
  signals: z.array(z.string()).exactOptional(),
  seen: z.object({ rows: z.number(), of: z.number(), missed: z.number(), types: z.array(z.string()) }).exactOptional(),
  detail: z.unknown(),
})

const StoredIndex = z.object({
  keys: z.array(z.object({ path: z.string(), direction: z.union([z.number(), z.string()]) })),
  unique: z.boolean(),
})

const StoredCatalog = z.object({
  capturedAt: z.string(),
  capture: z.unknown(),
  tables: z.array(
    z.object({
      schema: z.string(),
      table: z.string(),
      kind: z.string(),
      description: z.string().nullable(),
      estimatedRows: z.number().nullable(),
      warnings: z.array(z.string()),
      columns: z.array(StoredColumn),
      indexes: z.array(StoredIndex).exactOptional(),
      looked: z.object({ rows: z.number(), all: z.boolean() }).exactOptional(),
      detail: z.unknown(),
    }),
  ),
})

const StoredExposure = z.array(z.object({ schema: z.string(), table: z.string(), columns: z.array(z.string()) }))

export function readCatalog(json: string): Catalog {
  return StoredCatalog.parse(JSON.parse(json))
}

export function readExposure(json: string): readonly ShownTable[] {
  return StoredExposure.parse(JSON.parse(json))
}
