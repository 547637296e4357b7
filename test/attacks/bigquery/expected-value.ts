// Converts a cell of BigQuery's REST response to the value that the caller must get. This is a second implementation,
// because the driver's decoder cannot check itself.
import type { WireValue } from '../../support/bigquery-evaluator.ts'
import type { Type } from '../../engines/bigquery/types.ts'

export function expectedValue(type: Type | undefined, cell: WireValue): unknown {
  if (type?.kind === 'array') return (cell as { v: WireValue }[]).map(({ v }) => expectedValue(type.of, v))
  if (cell === null || type === undefined) return null
  if (type.kind === 'struct') {
    const { f } = cell as { f: { v: WireValue }[] }
    const seen = new Map<string, number>()
    return Object.fromEntries(
      type.fields.map((field, n) => [unique(seen, field.name, n), expectedValue(field.type, f[n]?.v ?? null)]),
    )
  }
  const text = String(cell)
  if (type.kind === 'range') return text
  switch (type.name) {
    case 'INT64':
      return Number.isSafeInteger(Number(text)) ? Number(text) : text
    case 'FLOAT64':
      return Number.isFinite(Number(text)) ? Number(text) : text
    case 'NUMERIC':
    case 'BIGNUMERIC':
      return text.replace(/\D/g, '').replace(/^0+/, '').length <= 15 ? Number(text) : text
    case 'BOOL':
      return text === 'true'
    case 'JSON':
      return JSON.parse(text)
    case 'TIMESTAMP': {
      const micros = BigInt(text)
      const rest = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n
      const second = new Date(Number((micros - rest) / 1000n)).toISOString().slice(0, 19)
      return `${second}.${String(rest).padStart(6, '0')}Z`
    }
    default:
      return text
  }
}

/** A repeated name gets _1, _2 and so on. A field without a name becomes _field_N. */
function unique(seen: Map<string, number>, name: string, n: number): string {
  if (name === '') return `_field_${n + 1}`
  const before = seen.get(name) ?? 0
  seen.set(name, before + 1)
  return before === 0 ? name : `${name}_${before}`
}
