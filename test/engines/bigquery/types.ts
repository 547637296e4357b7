// Converts GoogleSQL types between text (STRUCT<a INT64>), the analyzer's message, and a REST field.
import type { WireField } from '../../support/bigquery-evaluator.ts'
import type { Message } from './zetasql.ts'

export type Type =
  | { readonly kind: 'array'; readonly of: Type }
  | { readonly kind: 'range'; readonly of: Type }
  | { readonly kind: 'struct'; readonly fields: readonly { readonly name: string; readonly type: Type }[] }
  | { readonly kind: 'simple'; readonly name: string }

const OLD: Readonly<Record<string, string>> = { INT64: 'INTEGER', FLOAT64: 'FLOAT', BOOL: 'BOOLEAN' }

/** Reads ARRAY<…>, STRUCT<name type, …>, RANGE<…> or a simple name. The fields of a struct must have names. */
export function readType(text: string): Type {
  const inside = /^\s*(ARRAY|STRUCT|RANGE)\s*<(.*)>\s*$/s.exec(text)
  const [, outer, inner = ''] = inside ?? []
  if (outer === undefined) return { kind: 'simple', name: text.trim().replace(/\s*\(.*/s, '') }
  if (outer === 'ARRAY') return { kind: 'array', of: readType(inner) }
  if (outer === 'RANGE') return { kind: 'range', of: readType(inner) }
  const fields = parts(inner).map((part) => {
    const gap = part.indexOf(' ')
    return { name: part.slice(0, gap).replaceAll('`', ''), type: readType(part.slice(gap + 1)) }
  })
  return { kind: 'struct', fields }
}

/** Splits the text at commas outside of brackets. */
function parts(text: string): string[] {
  const found: string[] = []
  let depth = 0
  let from = 0
  for (let at = 0; at < text.length; at++) {
    if ('<('.includes(text.charAt(at))) depth++
    else if ('>)'.includes(text.charAt(at))) depth--
    else if (text[at] === ',' && depth === 0) {
      found.push(text.slice(from, at).trim())
      from = at + 1
    }
  }
  const last = text.slice(from).trim()
  return last === '' ? found : [...found, last]
}

export function toMessage(type: Type): Message {
  switch (type.kind) {
    case 'array':
      return { type_kind: 'TYPE_ARRAY', array_type: { element_type: toMessage(type.of) } }
    case 'range':
      return { type_kind: 'TYPE_RANGE', range_type: { element_type: toMessage(type.of) } }
    case 'struct': {
      const field = type.fields.map(({ name, type: of }) => ({ field_name: name, field_type: toMessage(of) }))
      return { type_kind: 'TYPE_STRUCT', struct_type: { field } }
    }
    case 'simple':
      return { type_kind: type.name === 'FLOAT64' ? 'TYPE_DOUBLE' : `TYPE_${type.name}` }
  }
}

export function fromMessage(message: Message): Type {
  switch (message.type_kind) {
    case 'TYPE_ARRAY':
      return { kind: 'array', of: fromMessage(message.array_type.element_type) }
    case 'TYPE_RANGE':
      return { kind: 'range', of: fromMessage(message.range_type.element_type) }
    case 'TYPE_STRUCT': {
      const fields: Message[] = message.struct_type?.field ?? []
      return {
        kind: 'struct',
        fields: fields.map((field) => ({ name: field.field_name, type: fromMessage(field.field_type) })),
      }
    }
    case 'TYPE_DOUBLE':
      return { kind: 'simple', name: 'FLOAT64' }
    default:
      return { kind: 'simple', name: String(message.type_kind).replace('TYPE_', '') }
  }
}

/** Writes the field of a schema, as in tables.get and in responses to queries. */
export function wireField(name: string, type: Type, mode: WireField['mode'] = 'NULLABLE'): WireField {
  switch (type.kind) {
    case 'array':
      return wireField(name, type.of, 'REPEATED')
    case 'range':
      return { name, mode, type: 'RANGE', rangeElementType: { type: type.of.kind === 'simple' ? type.of.name : '' } }
    case 'struct':
      return { name, mode, type: 'RECORD', fields: type.fields.map((field) => wireField(field.name, field.type)) }
    case 'simple':
      return { name, mode, type: OLD[type.name] ?? type.name }
  }
}
