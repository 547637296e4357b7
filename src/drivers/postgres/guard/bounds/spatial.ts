// Confines calls and casts of PostGIS. Many of its functions look up the SRID of a value in the table spatial_ref_sys,
// which is usually not exposed. A text may contain any SRID, so only constants, parameters and stored texts may become
// geometries (srids.ts checks their SRIDs).
import { words, type Node } from '../allowed/allowed-nodes.ts'
import type { Exposed } from '../exposed.ts'
import { steadily, unlessAny, wholeNumber, bytesAsText } from './argument-bounds.ts'
import type { Refusal } from '../refusal.ts'
import type { SqlType, Typed } from '../walk/from-items.ts'
import { isSpatial } from '../allowed/type-names.ts'
import { checkSrid, refused } from '../allowed/srids.ts'

const TEXT_HINT =
  'Make geometries from a constant or a stored text, or write st_geomfromtext(text, 4326), st_geomfromwkb(bytes, 4326) or st_makepoint(x, y).'

/**
 * The kind of each argument. `g`: a value of PostGIS. `s`: an SRID. `t`: a text whose SRID the next argument replaces.
 * `b`: bytes, likewise. `c`: a constant number of characters. `n`: anything that is no geometry.
 */
const ARGUMENTS: ReadonlyMap<string, string> = new Map([
  ...each('gg', 'st_distancesphere st_intersects st_contains st_within st_covers st_coveredby st_overlaps st_touches'),
  ...each('gg', 'st_crosses st_equals st_disjoint st_makeline st_makepolygon st_collect st_azimuth st_closestpoint'),
  ...each('gg', 'st_linelocatepoint st_distance st_dwithin st_snaptogrid'),
  ...each('gs', 'st_setsrid st_transform'),
  ...each('nns', 'st_point'),
  ...each('nnnns', 'st_makeenvelope'),
  ...each('ts', 'st_geomfromtext'),
  ...each('bs', 'st_geomfromwkb'),
  ...each('gc', 'st_geohash'),
  ...each('nnnn', 'st_makepoint'),
  ...each('ng', 'st_hexagongrid st_squaregrid'),
])

function each(kinds: string, names: string): [string, string][] {
  return names.split(' ').map((name) => [name, kinds])
}

/** Functions whose work is the product of the sizes of two arguments. */
const MULTIPLIES: ReadonlySet<string> = new Set([
  ...['st_distance', 'st_distancesphere', 'st_dwithin', 'st_intersects', 'st_contains', 'st_within', 'st_covers'],
  ...['st_coveredby', 'st_overlaps', 'st_touches', 'st_crosses', 'st_equals', 'st_disjoint', 'st_closestpoint'],
])
/** The limit on a compared value that the query makes, in bytes as text: about 2,000 points. */
const MADE_MAX = 65_536
const HASH_MAX = 20

/** Functions that return no value of PostGIS. */
const RETURNS_OTHER =
  /^st_(?:as\w+|[xyzm]|srid|distance\w*|dwithin|intersects|contains|within|covers|coveredby|overlaps|touches|crosses|equals|disjoint|area|length|perimeter|isvalid|isempty|geometrytype|numpoints|npoints|azimuth|linelocatepoint|geohash|[xy]m(?:in|ax))$/

/** Returns whether a function of PostGIS returns a number, a truth value or a short text. */
export function returnsShort(name: string): boolean {
  return RETURNS_OTHER.test(name) && !name.startsWith('st_as')
}

/** Returns the arguments of a PostGIS function with their bounds. Throws Refusal. */
export function spatialArguments(
  exposed: Exposed,
  name: string,
  given: readonly Typed[],
  at: number | undefined,
): readonly Node[] {
  if (given.some(({ node }) => node.NamedArgExpr)) {
    throw refused(name, `function ${name}() takes no named arguments here`, 'Write the arguments by position.', at)
  }
  const kinds = ARGUMENTS.get(name) ?? 'g'
  for (const [place, arg] of given.entries()) checkArgument(exposed, name, kinds[place] ?? 'n', given, place, arg, at)
  const nodes = given.map(({ node }) => node)
  if (name === 'st_asgeojson') return geoJson(exposed, given, at)
  return MULTIPLIES.has(name)
    ? nodes.map((node, place) => (place < 2 ? made(name, given[place], node, at) : node))
    : nodes
}

function checkArgument(
  exposed: Exposed,
  name: string,
  kind: string,
  given: readonly Typed[],
  place: number,
  arg: Typed,
  at: number | undefined,
): void {
  if (kind === 'g' && !mayBecomeSpatial(exposed, arg)) throw madeFromText(name, at)
  if (kind === 't' && given[place + 1] === undefined && !mayBecomeSpatial(exposed, arg)) throw madeFromText(name, at)
  if (kind === 'b' && given[place + 1] === undefined && arg.isStored !== true) throw madeFromText(name, at)
  if (kind === 's') checkSrid(name, wholeNumber(arg.node), at)
  if (kind === 'c' && (wholeNumber(arg.node) ?? Infinity) > HASH_MAX) {
    throw refused(
      name,
      `${name}() may return at most ${HASH_MAX} characters`,
      `Write a constant up to ${HASH_MAX}.`,
      at,
    )
  }
}

function madeFromText(name: string, at: number | undefined): Refusal {
  return refused(name, `${name} needs a value that is known to be a geometry or a geography`, TEXT_HINT, at)
}

function mayBecomeSpatial(exposed: Exposed, { node, type, isStored }: Typed): boolean {
  if (isStored === true || node.A_Const !== undefined || node.ParamRef !== undefined) return true
  if (node.TypeCast?.arg?.ParamRef !== undefined) return true
  return isSpatial(exposed, type)
}

/** Returns the arguments of st_asgeojson. Without explicit options, it prints a name from spatial_ref_sys. */
function geoJson(exposed: Exposed, given: readonly Typed[], at: number | undefined): readonly Node[] {
  const [value, digits, options] = given
  if (!value || value.type?.kind === 'row') {
    throw refused('st_asgeojson', 'st_asgeojson() takes no row here', 'Write st_asgeojson(geometry).', at)
  }
  const known = options === undefined ? 0 : wholeNumber(options.node)
  if (given.length > 3 || (known !== 0 && known !== 1)) {
    throw refused('st_asgeojson', 'the options of st_asgeojson() may be 0 or 1', 'Leave the third argument out.', at)
  }
  return [
    value.node,
    digits?.node ?? { A_Const: { ival: { ival: 9 } } },
    { A_Const: { ival: known === 1 ? { ival: 1 } : {} } },
  ]
}

/** Bounds one side of a comparison. A stored side stays unchanged, so that an index can be used. */
function made(name: string, arg: Typed | undefined, node: Node, at: number | undefined): Node {
  if (arg?.isStored === true || isPoint(node)) return node
  const size = steadily(bytesAsText(node), [node], name, at)
  return unlessAny({ what: name, size, most: MADE_MAX }, node, at)
}

/** Functions whose result is one point or one box. */
const SMALL: ReadonlySet<string> = new Set([
  ...['st_makepoint', 'st_point', 'st_makeenvelope', 'st_envelope', 'st_centroid', 'st_pointn', 'st_startpoint'],
  ...['st_endpoint', 'st_extent', 'st_pointonsurface'],
])

function isPoint(node: Node): boolean {
  if (node.TypeCast?.arg) return isPoint(node.TypeCast.arg)
  if (node.A_Const ?? node.ParamRef) return true
  const name = words(node.FuncCall?.funcname).at(-1) ?? ''
  const [first] = node.FuncCall?.args ?? []
  return (
    SMALL.has(name) || ((name === 'st_setsrid' || name === 'st_transform') && first !== undefined && isPoint(first))
  )
}

/** Returns the result type of a PostGIS function: null stands for anything that is no geometry. */
export function spatialResult(schema: string, name: string, out: readonly string[]): SqlType | null {
  const geometry: SqlType = { kind: 'named', schema, name: name === 'geography' ? name : 'geometry' }
  if (out.length > 1) {
    const columns = out.map((column) => ({ name: column, type: column === 'geom' ? geometry : null }))
    return { kind: 'row', known: 'always', columns }
  }
  return RETURNS_OTHER.test(name) ? null : geometry
}

/**
 * Checks values that PostgreSQL converts to one type: the operands of an operator, or the branches of CASE. If one of
 * them is a geometry, texts and bytes become geometries too. Throws Refusal.
 */
export function checkUnified(exposed: Exposed, values: readonly Typed[], at: number | undefined): void {
  if (!values.some(({ type }) => isSpatial(exposed, type))) return
  if (!values.every((value) => mayBecomeSpatial(exposed, value))) throw madeFromText('a value beside a geometry', at)
}

/** Returns the common type that PostgreSQL gives to values: a geometry if one is, otherwise the first known type. */
export function unifiedType(exposed: Exposed, types: readonly (SqlType | null)[]): SqlType | null {
  return types.find((type) => isSpatial(exposed, type)) ?? types.find((type) => type !== null) ?? null
}

/** For each function of pg_catalog: the positions of arguments that PostgreSQL converts to one type. */
const UNIFIED: ReadonlyMap<string, readonly number[]> = new Map(
  Object.entries({
    array_append: [0, 1],
    array_cat: [0, 1],
    array_position: [0, 1],
    array_positions: [0, 1],
    array_prepend: [0, 1],
    array_remove: [0, 1],
    array_replace: [0, 1, 2],
    lag: [0, 2],
    lead: [0, 2],
    width_bucket: [0, 1],
  }),
)
/** Aggregates that compare their arguments with the sorted values. */
const RANKS: ReadonlySet<string> = new Set(['cume_dist', 'dense_rank', 'percent_rank', 'rank'])

/** Checks the arguments of a function of pg_catalog, and the values that it sorts WITHIN GROUP. Throws Refusal. */
export function checkUnifiedArguments(
  exposed: Exposed,
  name: string,
  args: readonly Typed[],
  sorted: readonly Typed[],
  at: number | undefined,
): void {
  const places = UNIFIED.get(name)
  if (places)
    checkUnified(
      exposed,
      args.filter((_, place) => places.includes(place)),
      at,
    )
  if (RANKS.has(name)) checkUnified(exposed, [...args, ...sorted], at)
  // Its result may be one value or an array, so its type is not known.
  if (name === 'percentile_disc' && sorted.some(({ type }) => isSpatial(exposed, type))) {
    throw refused(name, `${name}() may not sort geometries here`, 'Sort by a number, such as st_area(g).', at)
  }
}

/** Checks a cast to a type of PostGIS. Throws Refusal. */
export function checkSpatialCast(exposed: Exposed, to: SqlType, from: Typed, at: number | undefined): void {
  if (!isSpatial(exposed, to)) return
  // PostgreSQL casts each part of an array or row by itself, and a part may be a text.
  const isMadeRow = from.type?.kind === 'row' && !from.type.oids
  const isMadeOfParts = isMadeRow || (from.node.A_ArrayExpr?.elements ?? []).length > 0
  if (!isMadeOfParts && (from.node.A_ArrayExpr !== undefined || mayBecomeSpatial(exposed, from))) return
  throw madeFromText('a cast to a geometry', at)
}
