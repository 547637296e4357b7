// The response of tables.get is not trusted. A field that does not match the documentation counts as absent. Only a
// response without a valid schema, or one that is no object, is Unreadable.
import { z } from 'zod'
import { Unreadable } from '../session/http-exchange.ts'
import { readSchema, type Field } from '../session/schema-types.ts'

const TEXT_MAX = 16_384
const CONSTRAINTS_MAX = 1_000

const Text = z.string().min(1).max(1_024)
const Count = z
  .union([
    z
      .string()
      .regex(/^\d{1,15}$/)
      .transform(Number),
    z.int().min(0),
  ])
  .optional()
  .catch(undefined)
const Flag = z.boolean().optional().catch(undefined)

const ForeignKey = z.object({
  referencedTable: z.object({ projectId: Text, datasetId: Text, tableId: Text }),
  columnReferences: z.array(z.object({ referencingColumn: Text, referencedColumn: Text })),
})

const Resource = z.object({
  schema: z.unknown().optional(),
  description: z
    .string()
    .transform((text) => text.slice(0, TEXT_MAX).trim())
    .optional()
    .catch(undefined),
  numRows: Count,
  numBytes: Count,
  creationTime: Count,
  lastModifiedTime: Count,
  requirePartitionFilter: Flag,
  timePartitioning: z
    .object({ type: Text.catch('DAY'), field: Text.optional().catch(undefined), requirePartitionFilter: Flag })
    .optional()
    .catch(undefined),
  rangePartitioning: z.object({ field: Text }).optional().catch(undefined),
  clustering: z
    .object({ fields: z.array(Text) })
    .optional()
    .catch(undefined),
  tableConstraints: z
    .object({
      primaryKey: z
        .object({ columns: z.array(Text) })
        .optional()
        .catch(undefined),
      foreignKeys: z.array(ForeignKey.nullable().catch(null)).max(CONSTRAINTS_MAX).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
})

export type Resource = Omit<z.infer<typeof Resource>, 'schema'> & { readonly fields: readonly Field[] }

/** Throws Unreadable if the response does not describe a table. */
export function readResource(json: unknown): Resource {
  const read = Resource.safeParse(json)
  if (!read.success) throw new Unreadable('an invalid table')
  const { schema, ...rest } = read.data
  return { ...rest, fields: readSchema(schema) }
}
