// The tool run_query. Its answers are short enough for a model's context, and say if rows were left out.
import { z } from 'zod'
import type { Arrival } from '../auth/caller.ts'
import { invalidRequest } from '../errors.ts'
import type { Operations } from '../operations/order-of-checks.ts'
import type { Prebuilt } from '../operations/operation-types.ts'
import { textOfJson } from '../operations/prebuilt-json.ts'
import { BudgetTokens, Id, parsedText } from './tool-arguments.ts'
import type { JsonObject } from './json-object.ts'
import { rowsWithin } from './fit-rows.ts'

const ROWS = 100
/** The default limit of bytes. At BYTES_PER_TOKEN, this is less than 25,000 tokens, at which clients cut a result. */
const BYTES = 48 * 1024
/** The limit of bytes if the caller sets `limit`. Then the caller can use a longer answer. */
const BYTES_WITH_LIMIT = 256 * 1024
/** How many bytes a token has in rows of numbers and short texts, as JSON arrays. */
const BYTES_PER_TOKEN = 2

const FIELDS: ReadonlySet<string> = new Set(['sql', 'collection', 'filter', 'pipeline', 'limit'])
/** The approximate size of an answer without its rows. At most half of the limit is reserved for it. */
const ABOUT_BYTES = 1_024

/** The answer has a `note` if rows were left out. Throws INVALID_REQUEST, and the errors of the operation. */
export async function runQuery(
  operations: Pick<Operations, 'runQuery'>,
  arrival: Arrival,
  args: JsonObject,
): Promise<string> {
  const { teamId, datasourceId, budgetTokens, ...rest } = args
  const { params, budget } = readPlace({ teamId, datasourceId, budgetTokens }, rest)
  const bytesMax = Math.min(
    rest['limit'] === undefined ? BYTES : BYTES_WITH_LIMIT,
    (budget ?? Infinity) * BYTES_PER_TOKEN,
  )
  const body = await bodyOf(rest)
  const within = { ...arrival, rowBytesMax: Math.max(bytesMax - ABOUT_BYTES, bytesMax / 2) }
  const answer = await operations.runQuery(within, { params, body })
  return noted(answer, bytesMax, typeof rest['limit'] === 'number')
}

const Place = z.strictObject({ teamId: Id, datasourceId: Id, budgetTokens: BudgetTokens.exactOptional() })

/** The driver reads the arguments of the query itself. */
function readPlace(place: JsonObject, rest: JsonObject) {
  const given = Object.fromEntries(Object.entries(place).filter(([, value]) => value !== undefined))
  const read = Place.safeParse(given)
  const details = [
    ...(read.error?.issues ?? []).map(({ path, message }) => `${path.join('.')}: ${message}`),
    ...Object.keys(rest)
      .filter((name) => !FIELDS.has(name))
      .map((name) => `${name.slice(0, 60)}: unknown argument`),
  ]
  if (!read.success || details.length > 0) throw invalidRequest(details)
  const { teamId, datasourceId: id, budgetTokens: budget } = read.data
  return { params: { teamId, id }, budget }
}

/** Keeps the order of the arguments, because a refusal may contain a position in the text of the body. */
async function bodyOf(args: JsonObject): Promise<JsonObject> {
  const entries = Object.entries(args).map(async ([name, value]) => [
    name,
    name === 'filter' || name === 'pipeline' ? await parsedText(name, value) : value,
  ])
  return { ...Object.fromEntries(await Promise.all(entries)), limit: args['limit'] ?? ROWS }
}

function noted({ json, cut }: Prebuilt, bytesMax: number, isLimited: boolean): string {
  const whole = textOfJson(json)
  const fitted = rowsWithin(whole, bytesMax)
  const rowCount = fitted?.rowCount ?? cut?.rowCount
  if (rowCount === undefined) return whole
  const by = fitted === null ? cut?.by : 'bytes'
  const note = by === 'bytes' ? cutByBytes(rowCount, bytesMax) : cutByRows(rowCount, isLimited)
  return `${(fitted?.json ?? whole).slice(0, -1)},"note":${JSON.stringify(note)}}`
}

function cutByRows(rowCount: number, isLimited: boolean): string {
  const more = isLimited
    ? 'This is the limit, or the row cap of the team: a higher limit does not pass the cap.'
    : 'Set limit for more, up to the row cap of the team.'
  return `Cut after ${rowCount} rows: more match. Aggregate, filter or select fewer rows. ${more}`
}

function cutByBytes(rowCount: number, bytesMax: number): string {
  return `Cut after ${rowCount} rows, at ${bytesMax} bytes. Select fewer or shorter columns, aggregate, or page by a key.`
}
