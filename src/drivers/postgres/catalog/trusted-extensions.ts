// Decides which extensions and schemas are trusted, and which types have a user-defined cast or operator class. Works
// on the rows of catalog queries, without I/O.
import { AppError } from '../../../errors.ts'
import { grouped, isTrueAt, numberAt, textAt, type Row } from './run-catalog-query.ts'
import type { CapturedExtension } from '../captured-facts.ts'
import { OWN_OPERATORS } from '../guard/allowed/types-and-extensions.ts'
import { FUNCTIONS } from '../guard/allowed/allowed-functions.ts'

/**
 * The known extensions, each with the oldest version that was checked. Their functions, operators, casts and types read
 * nothing but their arguments. types-and-extensions.ts lists the functions that a query may call. The last row has
 * extensions that are needed only for their operators and operator classes.
 */
const knownExtensions: ReadonlyMap<string, string> = new Map([
  ...['pg_trgm', 'unaccent', 'citext', 'hstore', 'uuid-ossp', 'pgcrypto', 'cube', 'intarray', 'ltree'].map(anyVersion),
  ...['fuzzystrmatch', 'tablefunc', 'vector', 'timescaledb', 'postgis'].map(anyVersion),
  // Before version 1.2, the extension's SQL functions found their helper functions along the search_path.
  ['earthdistance', '1.2'],
  ...['btree_gin', 'btree_gist', 'isn', 'seg'].map(anyVersion),
])

export const KNOWN_EXTENSIONS: ReadonlySet<string> = new Set(knownExtensions.keys())

function anyVersion(name: string): readonly [string, string] {
  return [name, '0']
}

function isTrusted(name: string, version: string): boolean {
  const oldest = knownExtensions.get(name)
  return oldest !== undefined && !isOlder(version, oldest)
}

function isOlder(version: string, oldest: string): boolean {
  const [have, need] = [version, oldest].map((text) => text.split('.').map((part) => Number.parseInt(part, 10)))
  for (const [index, part] of (need ?? []).entries()) {
    const own = have?.[index] ?? 0
    if (own !== part) return !(own > part)
  }
  return false
}

/** Returns the extensions of a database by their oid. */
export function readExtensions(rows: readonly Row[], members: readonly Row[]): ReadonlyMap<number, CapturedExtension> {
  const trusted = new Set(
    rows.filter((row) => isTrusted(textAt(row, 1), textAt(row, 2))).map((row) => numberAt(row, 0)),
  )
  const named = (kind: string, rest: (row: Row) => boolean = () => true): ReadonlyMap<number, readonly string[]> =>
    grouped(
      members.filter((row) => row[1] === kind && rest(row)),
      (row) => numberAt(row, 0),
      (row) => textAt(row, 2),
    )
  const functions = named('function')
  const operators = named('operator')
  const shadowed = named('shadow', (row) => !trusted.has(numberAt(row, 3)))
  return new Map(
    rows.map((row) => {
      const oid = numberAt(row, 0)
      return [
        oid,
        {
          name: textAt(row, 1),
          version: textAt(row, 2),
          schema: textAt(row, 3),
          trusted: trusted.has(oid),
          functions: functions.get(oid) ?? [],
          operators: operators.get(oid) ?? [],
          shadowed: shadowed.get(oid) ?? [],
        },
      ]
    }),
  )
}

type Extensions = ReadonlyMap<number, CapturedExtension>

/** Returns whether this is the oid of a trusted extension. (0 stands for no extension.) */
export function isOfTrusted(extensions: Extensions, oid: number): boolean {
  return extensions.get(oid)?.trusted === true
}

/**
 * Returns the schemas that may be on the search_path: all functions, operators and types in them belong to trusted
 * extensions, and PUBLIC may not create objects there. Array types and row types of tables do not count.
 */
export function trustedSchemas(extensions: Extensions, rows: readonly Row[]): string[] {
  const refused = new Set(
    rows.filter((row) => isTrueAt(row, 1) || !isOfTrusted(extensions, numberAt(row, 2))).map((row) => textAt(row, 0)),
  )
  return [...new Set(rows.map((row) => textAt(row, 0)))].filter((schema) => !refused.has(schema))
}

/** A user-defined cast, default operator class, or object in pg_catalog that belongs to no trusted extension. */
export interface UserMade {
  readonly what: string
  readonly drop: string
  /** The oids of the types of a cast or operator class. Empty for an object in pg_catalog. */
  readonly types: readonly number[]
}

export interface MadeRows {
  readonly casts: readonly Row[]
  readonly classes: readonly Row[]
  /** User-defined objects in pg_catalog. */
  readonly builtIns: readonly Row[]
}

export function userMade(extensions: Extensions, { casts, classes, builtIns }: MadeRows): UserMade[] {
  return [
    ...casts
      .filter((row) => !isOfTrusted(extensions, numberAt(row, 5)))
      .map((row) => ({
        what: `the cast (${textAt(row, 2)} AS ${textAt(row, 3)}) with function ${textAt(row, 4)}`,
        drop: `DROP CAST (${textAt(row, 2)} AS ${textAt(row, 3)});`,
        types: [numberAt(row, 0), numberAt(row, 1)],
      })),
    ...classes
      .filter((row) => !isOfTrusted(extensions, numberAt(row, 4)))
      .map((row) => ({
        what: `the default ${textAt(row, 3)} operator class ${textAt(row, 2)} for ${textAt(row, 1)}`,
        drop: `DROP OPERATOR CLASS ${textAt(row, 2)} USING ${textAt(row, 3)};`,
        types: [numberAt(row, 0)],
      })),
    ...builtIns
      .filter((row) => isCallable(textAt(row, 0), textAt(row, 1)) && !isOfTrusted(extensions, numberAt(row, 3)))
      .map((row) => ({
        what: `the ${textAt(row, 0)} pg_catalog.${textAt(row, 2)}`,
        drop: `DROP ${textAt(row, 0) === 'function' ? 'ROUTINE' : 'OPERATOR'} pg_catalog.${textAt(row, 2)};`,
        types: [],
      })),
  ]
}

function isCallable(kind: string, name: string): boolean {
  return kind === 'function' ? FUNCTIONS.has(name) : OWN_OPERATORS.has(name)
}

/**
 * Returns for the oid of each type the user-defined code that a query of the type may run. A cast between a built-in
 * and a user-defined type counts for the latter, because it runs only if a query names or reads that type. Throws
 * AppError DATASOURCE_UNAVAILABLE for a cast or operator class of built-in types only, which any query could run.
 */
export function taintedTypes(
  made: readonly UserMade[],
  isBuiltIn: (oid: number) => boolean,
): ReadonlyMap<number, string> {
  const tainted = new Map<number, string>()
  for (const { what, types } of made) {
    const own = types.filter((oid) => !isBuiltIn(oid))
    if (own.length === 0) {
      throw new AppError(
        'DATASOURCE_UNAVAILABLE',
        `This database has a user-defined object on built-in types, ${what}: any query could run ` +
          'it. Drop it there to use this database.',
      )
    }
    for (const oid of own) if (!tainted.has(oid)) tainted.set(oid, what)
  }
  return tainted
}
