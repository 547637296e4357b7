// Decides which types a query may name, and prints each with its schema. PostgreSQL's own types must be on a list.
// nameable-types.ts decides about user-defined types. Naming a type must also run no user-defined code. Row types of
// tables, and regclass and similar types, are refused.
import { TYPES } from './types-and-extensions.ts'
import type { CapturedType, TypeName } from '../../captured-facts.ts'
import type { Exposed } from '../exposed.ts'
import { typeHint } from './hints.ts'
import { word, words, type Node, type Struct } from './allowed-nodes.ts'
import { refusedType } from '../refusal.ts'
import type { Walk } from '../walk/scope.ts'
import type { Field, SqlType } from '../walk/from-items.ts'
import { checkSpatialModifiers } from './srids.ts'
import { isShown, shownTypes } from './nameable-types.ts'

/** The printed form of a type, and the type that it means. */
interface Named {
  readonly node: Struct<'TypeName'>
  readonly type: SqlType
}

/** Returns the type of a cast. Throws Refusal. */
export function castType(walk: Walk, type: Struct<'TypeName'>): Named {
  return anyTypeNamed(walk.exposed, type)
}

/**
 * Returns the type in a place that is no cast, where tsquery and types of PostGIS are refused too: PostgreSQL would read
 * texts of any length. Throws Refusal.
 */
export function typeName(walk: Walk, type: Struct<'TypeName'>): Named {
  const named = typeNamed(walk.exposed, type)
  const isQuery = named.node.names?.at(-1)?.String?.sval === 'tsquery'
  if (!isQuery && !isSpatial(walk.exposed, named.type)) return named
  throw refusedType(words(type.names).join('.'), type.location, 'Read the value as text, then write a cast.')
}

/** Returns the type of a parameter. A path must be a constant, so jsonpath is refused too. Throws Refusal. */
export function typeNamed(exposed: Exposed, type: Struct<'TypeName'>): Named {
  const named = anyTypeNamed(exposed, type)
  if (!isPathType(named.type)) return named
  throw refusedType('jsonpath', type.location, "Write the path as a constant: '$.a'::jsonpath.")
}

/** Returns whether the type is jsonpath or an array of it. */
export function isPathType(type: SqlType): boolean {
  if (type.kind === 'array') return isPathType(type.of)
  return type.kind === 'named' && type.schema === 'pg_catalog' && type.name === 'jsonpath'
}

function anyTypeNamed(exposed: Exposed, type: Struct<'TypeName'>): Named {
  const names = words(type.names)
  const written = names.join('.')
  const found = findType(exposed, names)
  if (!found) throw refusedType(written, type.location, typeHint(names.at(-1) ?? '', shownTypes(exposed)))
  const isOwn = found.schema === 'pg_catalog'
  const typmods = type.typmods?.map((modifier) => typmod(modifier, isOwn) ?? badTypmod(written, type.location))
  const bounds = type.arrayBounds?.map(({ Integer: bound }): Node => {
    if (!bound) throw refusedType(written, type.location)
    return { Integer: bound.ival ? { ival: bound.ival } : {} }
  })
  const node = {
    names: [word(found.schema), word(found.name)],
    ...(typmods && { typmods }),
    typemod: -1,
    ...(bounds && { arrayBounds: bounds }),
  }
  const named = sqlType(exposed, found)
  if (isSpatial(exposed, named)) checkSpatialModifiers(type.typmods ?? [], type.location)
  return { node, type: bounds ? { kind: 'array', of: named } : named }
}

/** Returns an argument of a type: a constant, or for PostGIS also an identifier, as in geometry(Point, 4326). */
function typmod(node: Node, isOwn: boolean): Node | undefined {
  const value = node.A_Const?.ival
  if (value) return { A_Const: { ival: value.ival ? { ival: value.ival } : {} } }
  const text = node.A_Const?.sval?.sval
  if (text !== undefined) return { A_Const: { sval: { sval: text } } }
  const fields = node.ColumnRef?.fields
  const name = fields?.length === 1 ? fields[0]?.String?.sval : undefined
  return name === undefined || isOwn ? undefined : { ColumnRef: { fields: [word(name)] } }
}

function badTypmod(written: string, at: number | undefined): never {
  throw refusedType(written, at, 'Write only constants in the parentheses of a type.')
}

function findType(exposed: Exposed, names: readonly string[]): TypeName | undefined {
  const [first, second, third] = names
  if (first === undefined || names.length > 3) return undefined
  if (third !== undefined && second !== undefined) {
    return first === exposed.capture.database ? inSchema(exposed, second, third) : undefined
  }
  if (second !== undefined) return inSchema(exposed, first, second)
  const builtIn = inSchema(exposed, 'pg_catalog', first)
  if (builtIn) return builtIn
  for (const schema of [...exposed.capture.searchPath, ...exposed.capture.trustedSchemas]) {
    if (exposed.type(schema, first)) return inSchema(exposed, schema, first)
  }
  return undefined
}

function inSchema(exposed: Exposed, schema: string, name: string): TypeName | undefined {
  if (schema !== 'pg_catalog') {
    const mayBeNamed = exposed.type(schema, name)?.refused === null && isShown(exposed, { schema, name })
    return mayBeNamed ? { schema, name } : undefined
  }
  const isListed = TYPES.has(name) || (name.startsWith('_') && TYPES.has(name.slice(1)))
  return isListed ? { schema, name } : undefined
}

/** Returns the captured type of this name. */
export function sqlType(exposed: Exposed, { schema, name }: TypeName): SqlType {
  if (schema === 'pg_catalog') {
    if (!name.startsWith('_')) return { kind: 'named', schema, name }
    return { kind: 'array', of: { kind: 'named', schema, name: name.slice(1) } }
  }
  const captured = exposed.type(schema, name)
  if (captured?.kind === 'array' && captured.of) return { kind: 'array', of: sqlType(exposed, captured.of) }
  if (captured?.kind === 'domain' && captured.of && !captured.extension) {
    const base = sqlType(exposed, captured.of)
    if (base.kind === 'array') return base
  }
  return { kind: 'named', schema, name }
}

/** Returns what introspection captured about a type, or about the base type of a domain. */
function capturedOf(exposed: Exposed, type: SqlType | null): CapturedType | undefined {
  if (type?.kind !== 'named') return undefined
  let captured = exposed.type(type.schema, type.name)
  for (let n = 0; captured?.kind === 'domain' && captured.of && n < 32; n++) {
    captured = exposed.type(captured.of.schema, captured.of.name)
  }
  return captured
}

/** Returns the fields of a row type, or undefined if the type is no row type, or its fields are unknown. */
export function fieldsOf(exposed: Exposed, type: SqlType | null): readonly Field[] | undefined {
  if (type?.kind === 'row') return type.columns
  const captured = capturedOf(exposed, type)
  if (captured?.kind !== 'composite') return undefined
  return captured.attributes.map((attribute) => ({ name: attribute.name, type: sqlType(exposed, attribute.type) }))
}

/** Returns the extension of a type: for an array or a domain, that of its element or base type. */
export function extensionOf(exposed: Exposed, type: SqlType | null): string | null {
  if (type?.kind === 'array') return extensionOf(exposed, type.of)
  return capturedOf(exposed, type)?.extension ?? null
}

/** Returns whether the type is of PostGIS, or has a field or element of such a type. */
export function isSpatial(exposed: Exposed, type: SqlType | null, depth = 0): boolean {
  if (type === null || depth > 8) return false
  if (type.kind === 'array') return isSpatial(exposed, type.of, depth)
  if (extensionOf(exposed, type) === 'postgis') return true
  return fieldsOf(exposed, type)?.some((field) => isSpatial(exposed, field.type, depth + 1)) === true
}

/** Returns whether string functions and operators accept this type, or the type is unknown. */
export function mayBeText(exposed: Exposed, type: SqlType | null): boolean {
  if (type === null || isSearched(type)) return true
  if (type.kind !== 'named') return false
  if (type.schema === 'pg_catalog') return CONVERTED.has(type.name)
  const captured = exposed.type(type.schema, type.name)
  if (captured?.kind === 'domain' && captured.of) return mayBeText(exposed, sqlType(exposed, captured.of))
  return captured?.extension === 'citext'
}

/** Types that PostgreSQL converts to text implicitly. */
const CONVERTED: ReadonlySet<string> = new Set(['bpchar', 'name', 'char'])

const SEARCHED: ReadonlySet<string> = new Set(['text', 'varchar', 'bytea'])

/** Returns whether a substring of a value has the value's type. For char(n) and citext, it is text. */
export function isSearched(type: SqlType): boolean {
  return type.kind === 'named' && type.schema === 'pg_catalog' && SEARCHED.has(type.name)
}
