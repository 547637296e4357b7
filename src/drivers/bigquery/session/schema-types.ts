// Converts the types of the REST API (INTEGER, RECORD, mode REPEATED) to GoogleSQL types (INT64, STRUCT, ARRAY). The
// schema is not trusted: its size is limited, and an invalid schema is Unreadable.
import { z } from 'zod'
import type { ColumnType } from '../captured-facts.ts'
import { Unreadable } from './http-exchange.ts'

/** BigQuery itself allows 15 levels and 10,000 columns, including nested columns. */
const DEPTH_MAX = 32
const FIELDS_MAX = 20_000
const NAME_MAX = 300
const DESCRIPTION_MAX = 16_384

export interface Field {
  readonly name: string
  readonly type: ColumnType
  /** The type in GoogleSQL, with its parameters: ARRAY<STRUCT<sku STRING(10), qty INT64>>. */
  readonly text: string
  readonly nullable: boolean
  readonly description: string | null
  /** True if a policy tag guards the field or a part of it. */
  readonly policyTagged: boolean
}

const Name = z.string().max(NAME_MAX)
const Digits = z
  .union([z.string().regex(/^\d{1,18}$/), z.int().min(0).transform(String)])
  .optional()
  .catch(undefined)

const WireField = z.object({
  name: Name.catch(''),
  type: z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/),
  mode: z.enum(['NULLABLE', 'REQUIRED', 'REPEATED']).optional().catch(undefined),
  description: z
    .string()
    .transform((text) => text.slice(0, DESCRIPTION_MAX))
    .optional()
    .catch(undefined),
  fields: z.array(z.unknown()).optional(),
  maxLength: Digits,
  precision: Digits,
  scale: Digits,
  policyTags: z
    .object({ names: z.array(z.unknown()).optional().catch(undefined) })
    .optional()
    .catch(undefined),
  rangeElementType: z
    .object({ type: z.enum(['DATE', 'DATETIME', 'TIMESTAMP']) })
    .optional()
    .catch(undefined),
})
type WireField = z.infer<typeof WireField>

const Schema = z.object({ fields: z.array(z.unknown()).optional() })

const GOOGLESQL: ReadonlyMap<string, string> = new Map(
  Object.entries({
    INTEGER: 'INT64',
    FLOAT: 'FLOAT64',
    BOOLEAN: 'BOOL',
    RECORD: 'STRUCT',
    DECIMAL: 'NUMERIC',
    BIGDECIMAL: 'BIGNUMERIC',
  }),
)

/** Returns `fields` of the schema, or an empty list if there are none. Throws Unreadable. */
export function readSchema(schema: unknown): readonly Field[] {
  const read = Schema.safeParse(schema ?? {})
  if (!read.success) throw new Unreadable('an invalid schema')
  let left = FIELDS_MAX
  const fieldsOf = (fields: readonly unknown[], depth: number): Field[] => {
    left -= fields.length
    if (left < 0 || depth > DEPTH_MAX) throw new Unreadable('a schema that is too large')
    return fields.map((each) => {
      const wire = WireField.safeParse(each)
      if (!wire.success) throw new Unreadable('a field without a type')
      return fieldOf(wire.data, fieldsOf(wire.data.fields ?? [], depth + 1))
    })
  }
  return fieldsOf(read.data.fields ?? [], 0)
}

function fieldOf(wire: WireField, parts: readonly Field[]): Field {
  const name = baseOf(wire)
  const repeated = wire.mode === 'REPEATED'
  const text = name === 'STRUCT' ? `STRUCT<${parts.map(spelledPart).join(', ')}>` : name + parametersOf(wire)
  return {
    name: wire.name,
    type: { name, repeated, fields: parts.map((part) => ({ ...part.type, field: part.name })) },
    text: repeated ? `ARRAY<${text}>` : text,
    // A stored array is never NULL, so `nullable` is false for an array.
    nullable: wire.mode !== 'REQUIRED' && !repeated,
    description: wire.description?.trim() || null,
    policyTagged: (wire.policyTags?.names ?? []).length > 0 || parts.some((part) => part.policyTagged),
  }
}

function baseOf({ type, rangeElementType }: WireField): string {
  const name = GOOGLESQL.get(type.toUpperCase()) ?? type.toUpperCase()
  return name === 'RANGE' && rangeElementType !== undefined ? `RANGE<${rangeElementType.type}>` : name
}

/** Returns for example `(10)` for STRING(10), or `(10, 2)` for NUMERIC(10, 2). */
function parametersOf({ maxLength, precision, scale }: WireField): string {
  if (maxLength !== undefined && maxLength !== '0') return `(${maxLength})`
  if (precision === undefined || precision === '0') return ''
  return scale === undefined || scale === '0' ? `(${precision})` : `(${precision}, ${scale})`
}

function spelledPart({ name, text }: Field): string {
  if (name === '') return text
  return `${/^[A-Za-z_]\w*$/.test(name) ? name : `\`${name.replace(/[`\\]/g, '\\$&')}\``} ${text}`
}
