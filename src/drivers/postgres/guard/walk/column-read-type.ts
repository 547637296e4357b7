// Finds columns that a query must not read with their own type, and the type to cast them to. PostgreSQL gives a
// literal the type of the column that it is compared with. If that type is regclass or similar, the server would look
// up the literal as a name, and reveal which objects exist. If it is a domain, the literal would run the domain's
// CHECK.
import type { CapturedType, TypeName } from '../../captured-facts.ts'
import type { Exposed, ExposedColumn } from '../exposed.ts'

const NAMES = [
  ...[24, 2202, 2203, 2204, 2205, 2206], // regproc, regprocedure, regoper, regoperator, regclass, regtype
  ...[3734, 3769, 4089, 4096, 4191, 1033], // regconfig, regdictionary, regnamespace, regrole, regcollation, aclitem
]
const ARRAYS = [
  ...[1008, 2207, 2208, 2209, 2210, 2211], // the arrays of the types above, in the same order
  ...[3735, 3770, 4090, 4097, 4192, 1034],
]
const LOOKED_UP: ReadonlyMap<number, 'text' | '_text'> = new Map([
  ...NAMES.map((oid) => [oid, 'text'] as const),
  ...ARRAYS.map((oid) => [oid, '_text'] as const),
])

/** Returns true for such a type, and for an array of it. */
export function isLookedUp(oid: number): boolean {
  return LOOKED_UP.has(oid)
}

/** Returns the type to which the column is cast, or undefined if it needs no cast. */
export function readAs(exposed: Exposed, column: ExposedColumn): TypeName | undefined {
  const name = asText(exposed, column)
  return name === undefined ? belowChecks(exposed, column.type) : { schema: 'pg_catalog', name }
}

/**
 * If a query may not name a domain, returns its base type: reading the column with that type runs no CHECK. For an
 * array of such a domain, returns the array type of the base type.
 */
function belowChecks(exposed: Exposed, type: TypeName): TypeName | undefined {
  const captured = exposed.type(type.schema, type.name)
  if (!captured?.of || captured.refused === null) return undefined
  if (captured.kind === 'domain') return belowChecks(exposed, captured.of) ?? captured.of
  if (captured.kind !== 'array') return undefined
  const element = belowChecks(exposed, captured.of)
  return element === undefined ? undefined : arrayOf(exposed, element)
}

/** Returns the array type for these elements, or undefined if they are arrays: PostgreSQL has no arrays of arrays. */
function arrayOf(exposed: Exposed, element: TypeName): TypeName | undefined {
  const isElement = ({ kind, of }: CapturedType): boolean =>
    kind === 'array' && of?.schema === element.schema && of.name === element.name
  const captured = exposed.capture.types.find(isElement)
  if (captured !== undefined) return { schema: captured.schema, name: captured.name }
  const isPlain = element.schema === 'pg_catalog' && !element.name.startsWith('_')
  return isPlain ? { schema: 'pg_catalog', name: `_${element.name}` } : undefined
}

/** Returns text or text[] if the server looks up values of this type, or of its elements or base type, as names. */
function asText(exposed: Exposed, column: ExposedColumn): 'text' | '_text' | undefined {
  let { type, typeOid } = column
  let isArray = false
  // A type cannot contain itself. The limit protects against a corrupt catalog.
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
