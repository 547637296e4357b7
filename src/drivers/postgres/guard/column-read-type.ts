// Types whose values are names of things in the database: an oid or a name is looked up wherever one is read or printed.
// A literal beside such a column would be taken for its type, and tell what exists; beside one of a domain it would run
// the domain's CHECK.
import type { CapturedType, TypeName } from '../capture.ts'
import type { Exposed, ExposedColumn } from './exposed.ts'

const NAMES = [
  ...[24, 2202, 2203, 2204, 2205, 2206], // regproc, regprocedure, regoper, regoperator, regclass, regtype
  ...[3734, 3769, 4089, 4096, 4191, 1033], // regconfig, regdictionary, regnamespace, regrole, regcollation, aclitem
]
const ARRAYS = [
  ...[1008, 2207, 2208, 2209, 2210, 2211], // the same, as arrays
  ...[3735, 3770, 4090, 4097, 4192, 1034],
]
const LOOKED_UP: ReadonlyMap<number, 'text' | '_text'> = new Map([
  ...NAMES.map((oid) => [oid, 'text'] as const),
  ...ARRAYS.map((oid) => [oid, '_text'] as const),
])

/** Whether this is one of PostgreSQL's own types of names, or an array of one. */
export function isLookedUp(oid: number): boolean {
  return LOOKED_UP.has(oid)
}

/** The type that a column is read as instead of its own; undefined for most. */
export function readAs(exposed: Exposed, column: ExposedColumn): TypeName | undefined {
  const name = asText(exposed, column)
  return name === undefined ? belowChecks(exposed, column.type) : { schema: 'pg_catalog', name }
}

/** For a domain that a query may not name, or an array of one, what lies below it: reading that runs no CHECK. */
function belowChecks(exposed: Exposed, type: TypeName): TypeName | undefined {
  const captured = exposed.type(type.schema, type.name)
  if (!captured?.of || captured.refused === null) return undefined
  if (captured.kind === 'domain') return belowChecks(exposed, captured.of) ?? captured.of
  if (captured.kind !== 'array') return undefined
  const element = belowChecks(exposed, captured.of)
  return element === undefined ? undefined : arrayOf(exposed, element)
}

/** Undefined for an array: of those PostgreSQL has no arrays, a domain of them can only be read as it is. */
function arrayOf(exposed: Exposed, element: TypeName): TypeName | undefined {
  const isElement = ({ kind, of }: CapturedType): boolean =>
    kind === 'array' && of?.schema === element.schema && of.name === element.name
  const captured = exposed.capture.types.find(isElement)
  if (captured !== undefined) return { schema: captured.schema, name: captured.name }
  const isPlain = element.schema === 'pg_catalog' && !element.name.startsWith('_')
  return isPlain ? { schema: 'pg_catalog', name: `_${element.name}` } : undefined
}

/** For names of things, also through domains and arrays of them: the text they show. */
function asText(exposed: Exposed, column: ExposedColumn): 'text' | '_text' | undefined {
  let { type, typeOid } = column
  let isArray = false
  // Types do not hold themselves; the count is against a capture that says so.
  for (let n = 0; n < 32; n++) {
    const found = LOOKED_UP.get(typeOid)
    if (found !== undefined) return isArray ? '_text' : found
    const captured = exposed.type(type.schema, type.name)
    if (!captured?.of || (captured.kind !== 'domain' && captured.kind !== 'array')) return undefined
    isArray ||= captured.kind === 'array'
    typeOid = captured.ofOid
    type = captured.of
  }
  return undefined
}
