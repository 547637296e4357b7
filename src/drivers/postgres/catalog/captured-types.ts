// Judges the user-defined types of a database: which types a query may name, and which columns can be exposed. A type
// that is not known is refused. Works on the rows of catalog queries, without I/O.
import { grouped, isTrueAt, numberAt, textAt, type Row } from './run-catalog-query.ts'
import type { CapturedAttribute, CapturedExtension, CapturedType } from '../captured-facts.ts'
import { FUNCTIONS } from '../guard/allowed/allowed-functions.ts'
import { isLookedUp } from '../guard/walk/column-read-type.ts'
import { isOfTrusted } from './trusted-extensions.ts'

export interface TypeRows {
  readonly types: readonly Row[]
  readonly attributes: readonly Row[]
  readonly support: readonly Row[]
  readonly checks: readonly Row[]
  readonly ranges: readonly Row[]
}

export interface ReadTypes {
  readonly types: readonly CapturedType[]
  /** Returns why a column of this type cannot be exposed, as a sentence. Returns null if it can. */
  unexposable(oid: number): string | null
  /** Returns whether a domain, or a domain that it is based on, refuses nulls. */
  isNotNull(oid: number): boolean
}

interface TypeRow {
  readonly type: Omit<CapturedType, 'refused'>
  /** The name that format_type() returns. */
  readonly shown: string
  readonly notNull: boolean
  /** True for the row type of a table or view, and an array of it. False for a stand-alone composite type. */
  readonly isRowType: boolean
  readonly hasCheck: boolean
}

/** `taintOf` returns the user-defined code that reading a type may run (trusted-extensions.ts). */
export function readTypes(
  rows: TypeRows,
  extensions: ReadonlyMap<number, CapturedExtension>,
  taintOf: (isBuiltIn: (oid: number) => boolean) => ReadonlyMap<number, string>,
): ReadTypes {
  const attributes = grouped(rows.attributes, (row) => numberAt(row, 0), attributeOf)
  const byOid = new Map(
    rows.types.map((row) => [numberAt(row, 0), typeOf(row, extensions, attributes.get(numberAt(row, 0)) ?? [])]),
  )
  // initdb creates the types of information_schema too, but some are domains with a CHECK, so they do not count as
  // built-in.
  const isBuiltIn = (oid: number): boolean => oid < 16384 && !byOid.has(oid)
  const known: Known = {
    byOid,
    isBuiltIn,
    tainted: taintOf(isBuiltIn),
    support: grouped(
      rows.support.filter((row) => !isOfTrusted(extensions, numberAt(row, 2))),
      (row) => numberAt(row, 0),
      (row) => ({ what: textAt(row, 1), isCompiled: isTrueAt(row, 3) }),
    ),
    checks: new Map(
      rows.checks
        .filter((row) => !(isTrueAt(row, 2) && FUNCTIONS.has(textAt(row, 3))))
        .filter((row) => !isOfTrusted(extensions, numberAt(row, 4)))
        .map((row) => [numberAt(row, 0), textAt(row, 1)]),
    ),
    rangeOf: new Map(rows.ranges.map((row) => [numberAt(row, 0), numberAt(row, 1)])),
  }
  const judge = judgement(known)
  // A column of a domain, or of an array of a domain, is read as the base type (column-read-type.ts), so no CHECK runs.
  // But an array of a domain over arrays has no base type. PostgreSQL may then give a literal beside the column the
  // domain's type, and so reveal whether the CHECK accepts the literal.
  const withoutChecks: Known = { ...known, checks: new Map() }
  const ofColumn = (oid: number): string | null => {
    const row = byOid.get(oid)
    const isBelow = row?.type.kind === 'domain' || byOid.get(row?.type.ofOid ?? 0)?.type.kind === 'domain'
    if (row === undefined || !isBelow) return judge(oid).unexposable
    return unexposableItself(withoutChecks, oid, row) ?? ofColumn(row.type.ofOid)
  }
  const isNotNull = (oid: number): boolean => {
    const row = byOid.get(oid)
    return row?.type.kind === 'domain' && (row.notNull || isNotNull(row.type.ofOid))
  }
  return {
    types: [...byOid.values()].map(({ type }) => ({ ...type, refused: judge(type.oid).refused })),
    unexposable: (oid) => ofColumn(oid),
    isNotNull,
  }
}

const kinds: ReadonlyMap<string, CapturedType['kind']> = new Map([
  ['b', 'base'],
  ['e', 'enum'],
  ['d', 'domain'],
  ['c', 'composite'],
  ['r', 'range'],
  ['m', 'multirange'],
])

function typeOf(
  row: Row,
  extensions: ReadonlyMap<number, CapturedExtension>,
  attributes: readonly CapturedAttribute[],
): TypeRow {
  const ofOid = numberAt(row, 4)
  const kind = kinds.get(textAt(row, 3)) ?? 'base'
  return {
    type: {
      oid: numberAt(row, 0),
      schema: textAt(row, 1),
      name: textAt(row, 2),
      kind: kind === 'base' && ofOid !== 0 ? 'array' : kind,
      extension: extensions.get(numberAt(row, 9))?.name ?? null,
      of: ofOid === 0 ? null : { schema: textAt(row, 5), name: textAt(row, 6) },
      ofOid,
      attributes,
      delimiter: textAt(row, 7),
    },
    shown: textAt(row, 11),
    notNull: isTrueAt(row, 8),
    isRowType: isTrueAt(row, 10),
    hasCheck: isTrueAt(row, 12),
  }
}

function attributeOf(row: Row): CapturedAttribute {
  return {
    name: textAt(row, 1),
    typeOid: numberAt(row, 2),
    type: { schema: textAt(row, 3), name: textAt(row, 4) },
  }
}

interface Judgement {
  readonly unexposable: string | null
  readonly refused: string | null
  /** True if the values are names of objects in the database, like those of regclass, or arrays of such names. */
  readonly isLookedUp: boolean
}

interface Known {
  readonly byOid: ReadonlyMap<number, TypeRow>
  readonly isBuiltIn: (oid: number) => boolean
  readonly tainted: ReadonlyMap<number, string>
  /** User-defined functions and operator classes of a type that no trusted extension owns. Compiled ones come last. */
  readonly support: ReadonlyMap<number, readonly { readonly what: string; readonly isCompiled: boolean }[]>
  /** The functions that a domain's CHECK calls, and that could read data. */
  readonly checks: ReadonlyMap<number, string>
  readonly rangeOf: ReadonlyMap<number, number>
}

const fine: Judgement = { unexposable: null, refused: null, isLookedUp: false }
/**
 * For regclass and similar types. Columns of these types are read as text. Queries may not cast to these types, because
 * the cast would reveal which objects exist.
 */
const lookedUp: Judgement = {
  unexposable: null,
  refused: 'Its values are names of objects in the database.',
  isLookedUp: true,
}

function judgement(known: Known): (oid: number) => Judgement {
  const judged = new Map<number, Judgement>()
  const judge = (oid: number): Judgement => {
    if (known.isBuiltIn(oid)) return isLookedUp(oid) ? lookedUp : fine
    const before = judged.get(oid)
    if (before !== undefined) return before
    const row = known.byOid.get(oid)
    const own = unexposableItself(known, oid, row)
    // Ends the recursion if a corrupt catalog has a type that contains itself.
    judged.set(oid, { unexposable: own, refused: own, isLookedUp: false })
    const verdicts = row === undefined ? [] : oidsBelow(known, row.type).map(judge)
    const names = verdicts.some((verdict) => verdict.isLookedUp)
    // A domain or an array of such names can be read as text. A composite type with such a field cannot.
    const isPlain = row?.type.kind === 'domain' || row?.type.kind === 'array'
    const field = names && !isPlain ? holdsNames(row) : null
    const unexposable = own ?? verdicts.find((verdict) => verdict.unexposable !== null)?.unexposable ?? field
    const check = row?.hasCheck === true ? `A cast to the domain ${row.shown} would run its CHECK.` : null
    const [support] = known.support.get(oid) ?? []
    const unknown = row === undefined || support === undefined ? null : behind(row, support.what)
    const refused =
      unexposable ?? check ?? unknown ?? verdicts.find((verdict) => verdict.refused !== null)?.refused ?? null
    const verdict = { unexposable, refused, isLookedUp: names && isPlain }
    judged.set(oid, verdict)
    return verdict
  }
  return judge
}

/** Returns the types that a type consists of: its base, elements, range bounds or attributes. */
function oidsBelow(known: Known, { oid, ofOid, attributes }: TypeRow['type']): readonly number[] {
  const below = [ofOid, known.rangeOf.get(oid) ?? 0, ...attributes.map(({ typeOid }) => typeOid)]
  return below.filter((part) => part !== 0)
}

function unexposableItself(known: Known, oid: number, row: TypeRow | undefined): string | null {
  if (row === undefined) return 'Its type is not one that introspection could read.'
  const tainted = known.tainted.get(oid)
  if (tainted !== undefined) return `Reading the type ${row.shown} may run ${tainted}, which was made in this database.`
  if (row.isRowType) return `Its type ${row.shown} is the row type of a table, and would show columns of that table.`
  // PostgreSQL may give a literal the type of the column beside it, as in lag(d, 1, 'x'), which runs the CHECK.
  const called = known.checks.get(oid)
  if (called !== undefined) return `The CHECK of the domain ${row.shown} calls ${called}, and a query could run it.`
  if (isRange(row.type) && isSpatial(known, known.rangeOf.get(oid) ?? 0)) return rangeOfShapes(row)
  const [support] = known.support.get(oid) ?? []
  return support === undefined || support.isCompiled ? null : behind(row, support.what)
}

function isRange({ kind }: TypeRow['type']): boolean {
  return kind === 'range' || kind === 'multirange'
}

/** Returns whether a type is of PostGIS, or contains such a type. */
function isSpatial(known: Known, oid: number, depth = 0): boolean {
  const type = known.byOid.get(oid)?.type
  if (type === undefined || depth > DEPTH_MAX) return false
  return type.extension === 'postgis' || oidsBelow(known, type).some((part) => isSpatial(known, part, depth + 1))
}

/** Only a corrupt catalog has types of this depth. */
const DEPTH_MAX = 16

/**
 * A query that makes a geometry could read hidden rows of spatial_ref_sys (guard/bounds/spatial.ts). The guard does not
 * track geometries through the functions and operators of ranges.
 */
function rangeOfShapes({ shown }: TypeRow): string {
  return `${shown} is a range of values of PostGIS.`
}

function holdsNames(row: TypeRow | undefined): string {
  return `The type ${row?.shown ?? ''} contains names of objects in the database, and a query could look up others.`
}

function behind(row: TypeRow, what: string): string {
  return `Behind the type ${row.shown} is the ${what}, which belongs to no extension that Vitrine knows.`
}
