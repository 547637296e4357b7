// Checks the SRIDs of PostGIS in a query. PostGIS looks up each SRID in spatial_ref_sys, which is usually not exposed.
// So a query may use only the SRIDs of stored values, and the listed ones, whose rows PostGIS itself creates.
import type { Node } from './allowed-nodes.ts'
import type { Exposed } from '../exposed.ts'
import { wholeNumber } from '../bounds/argument-bounds.ts'
import { Refusal } from '../refusal.ts'

/** Common SRIDs of EPSG. PostGIS creates their rows when it is installed. */
const KNOWN_SRIDS: ReadonlySet<number> = new Set([
  ...[0, 2056, 2154, 2157, 2180, 2193, 3006, 3031, 3034, 3035, 3067, 3301, 3310, 3346, 3347, 3395, 3413, 3763, 3857],
  ...[4258, 4267, 4269, 4283, 4326, 4674, 5070, 5514, 6933, 21781, 27700, 28992, 29902, 29903, 31370],
  ...between(25828, 25838),
  ...between(26901, 26923),
  ...between(28348, 28358),
  ...between(31466, 31469),
  ...between(31978, 31985),
  ...between(32601, 32660),
  ...between(32701, 32760),
])

function between(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at)
}

const SRID_HINT =
  'Use a well-known SRID, such as 4326, 3857 or a UTM zone of WGS 84 (32601–32760), as a constant. For another one, ask an administrator to expose a view that computes the value.'
export function refused(what: string, why: string, hint: string, at: number | undefined): Refusal {
  return new Refusal('function', what, why, hint, at)
}

/** Throws Refusal if the SRID is not listed. `name` is the part of the query that has it. */
export function checkSrid(name: string, srid: number | undefined, at: number | undefined): void {
  if (srid !== undefined && KNOWN_SRIDS.has(srid)) return
  throw refused(name, `${name} may use only a constant, well-known SRID`, SRID_HINT, at)
}

/** Checks the arguments of a type, as in geometry(Point, 4326). Throws Refusal. */
export function checkSpatialModifiers(modifiers: readonly Node[], at: number | undefined): void {
  for (const modifier of modifiers) {
    const srid = wholeNumber(modifier)
    if (srid !== undefined) checkSrid('a type of PostGIS', srid, at)
  }
}

/**
 * Checks a constant or parameter that may become a geometry. Its SRIDs must be listed, in any form: `SRID=4326;POINT(1
 * 1)`, hexadecimal, or GeoJSON. Throws Refusal.
 */
export function checkSpatialText(exposed: () => Exposed, text: string, at: number | undefined): void {
  if (!mayHaveSrid(text) || !exposed().extension('postgis')) return
  const plain = text.replaceAll(/\\u00([0-9a-f]{2})/gi, (_, code: string) => String.fromCharCode(parseInt(code, 16)))
  const bare = plain.replaceAll('\\', '')
  for (const [, written] of bare.matchAll(/srid=\s*([-+]?\d*)/gi)) checkSrid('SRID=', Number(written), at)
  for (const [, order, rest = ''] of bare.matchAll(HEXADECIMAL)) {
    const bytes = Buffer.from(rest, 'hex')
    const [type, srid] = [0, 4].map((from) => (order === '1' ? bytes.readUInt32LE(from) : bytes.readUInt32BE(from)))
    if (hasSrid(type ?? 0)) checkSrid('SRID', srid, at)
  }
  const from = bare.indexOf('{')
  if (from >= 0 && /["']crs["']/.test(bare.slice(from)))
    throw refused('crs', 'GeoJSON may name no crs here', SRID_HINT, at)
}

export function mayHaveSrid(text: string): boolean {
  return MAY_HAVE_SRID.test(text)
}

const MAY_HAVE_SRID = /srid|crs|\\|(?:^|[^0-9a-f])0[01][0-9a-f]{24}/i
/** The beginning of a geometry in hexadecimal: byte order, type, SRID. */
const HEXADECIMAL = /(?<![0-9a-f])0([01])([0-9a-f]{16})(?=[0-9a-f]{8})/gi
const SRID_FLAG = 0x20000000
const TYPES_MAX = 17

/** Returns whether an SRID follows this type. PostGIS ignores the thousands of a type. */
function hasSrid(type: number): boolean {
  const kind = (type & 0x0fffffff) % 1_000
  return (type & SRID_FLAG) !== 0 && kind >= 1 && kind <= TYPES_MAX
}
