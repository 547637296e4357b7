// The entry of the guard: turns a caller's SQL into SQL that can read only exposed columns, or refuses it. judge.ts
// does the work: parse, confine, print, parse again, compare. The verdict depends on no database and no I/O, and on the
// clock only by `stop` and by the deadline for long texts. The guard refuses all that it does not know.
import { seal } from '../../confined.ts'
import { signalOf, type Stop } from '../../stop.ts'
import {
  NOBODY,
  type Catalog,
  type Denied,
  type Limits,
  type Malformed,
  type QueryBody,
  type Verdict,
} from '../../driver.ts'
import type { PostgresQuery } from '../confined-query.ts'
import { mayCollate } from './allowed/collations.ts'
import { comparedByIcu, exposedOf } from './exposed.ts'
import { longLists } from './bounds/partition-copies.ts'
import { HERE, judge, lostText } from './judge.ts'
import { bindParams, boundTexts, type BoundParams } from './param-values.ts'
import type { Case, Parser } from './syntax/parser.ts'
import { recall, remember, shapeOf, type Shape } from './shape-cache.ts'

/** The body of POST …/query for PostgreSQL. */
export type PostgresBody = QueryBody

/**
 * Confines one query to the exposed catalog. Returns the sealed query, a refusal, or a syntax error. Throws or rejects
 * with the reason of `stop`, with AppError INVALID_REQUEST for wrong parameters, SCHEMA_STALE for a capture of another
 * CAPTURE_VERSION, and OVERLOADED if too many long texts of the owner wait.
 */
export function confine(
  parser: Parser,
  body: PostgresBody,
  catalog: Catalog,
  limits: Limits,
  stop: Stop,
): Verdict | Promise<Verdict> {
  stop.throwIfAborted()
  const rowCap = Math.min(body.limit ?? limits.rowCap, limits.rowCap)
  const params = bindParams(body.params, () =>
    mayCollate(body.text) ? comparedByIcu(exposedOf(catalog)) : exposedOf(catalog),
  )
  const { forms, bytes: paramBytes } = params
  const asked: Case = { text: body.text, catalog, rowCap, params: forms, paramBytes, owner: limits.owner ?? NOBODY }
  const shape = shapeOf(body.text, params.key)
  const recalled = shape === null ? null : recall(catalog, shape, rowCap)
  if (recalled !== null) return confined(parser, asked, recalled, params)
  return judged(parser, asked, shape, params, signalOf(stop))
}

/** Seals a query with its parameters. Refuses lists in parameters that are too long. */
function confined(parser: Parser, asked: Case, query: PostgresQuery, params: BoundParams): Verdict {
  const texts = boundTexts(params, query)
  const long = query.lists && longLists(query.lists, texts)
  if (long) return long
  const locate = (place: number) => parser.locate(asked, { printed: query.text, place }, AbortSignal.timeout(LOCATE_MS))
  return { kind: 'confined', query: seal('POSTGRES', { ...query, params: texts, locate }) }
}

/** Judges a text that is in no cache. */
async function judged(
  parser: Parser,
  asked: Case,
  shape: Shape | null,
  params: BoundParams,
  signal: AbortSignal,
): Promise<Verdict> {
  const { catalog, rowCap } = asked
  const ruled = await ruling(parser, asked, signal)
  if (ruled.kind !== 'made') return ruled
  if (shape !== null) {
    await remember(catalog, shape, rowCap, ruled.query, async (text) => {
      // To learn a shape, the guard may judge thirty texts, so it yields to the event loop between them.
      await parser.turn()
      const again = await ruling(parser, { ...asked, text }, signal)
      return again.kind === 'made' ? again.query : null
    })
  }
  return confined(parser, asked, ruled.query, params)
}

/** The deadline for mapping a database error to a position in the caller's text. */
const LOCATE_MS = 2_000

type Ruling = { readonly kind: 'made'; readonly query: PostgresQuery } | Denied | Malformed

/** Judges on the main thread if that takes a few milliseconds, otherwise in a worker thread. */
async function ruling(parser: Parser, asked: Case, signal: AbortSignal): Promise<Ruling> {
  // Throw SCHEMA_STALE here. judge() would turn it into a refusal.
  exposedOf(asked.catalog)
  const here = judge(parser.parse, asked, HERE)
  const isDone = here.kind !== 'heavy' && here.kind !== 'lost'
  const judged = isDone ? here : await parser.judge(asked, signal)
  if (judged.kind === 'heavy' || judged.kind === 'lost') return lostText()
  if (judged.kind !== 'denied') return judged
  const { defect, ...denied } = judged
  if (defect !== undefined) parser.report(defect, asked.text)
  return denied
}
