// Reads JSON bodies. Refuses other content types (415), bodies with too many values, and query parameters that
// JSON.parse would round. Long bodies are scanned and parsed in slices.
import type { FastifyInstance } from 'fastify'
import { VALUES } from '../contract/route-type.ts'
import type { AppError } from '../errors.ts'
import { parseInSlices } from '../operations/parse-json-in-slices.ts'
import { refusalOf, textOf } from '../operations/scan-json.ts'
import { notJson } from './error-responses.ts'
import { roundedNumbers, roundedParams } from './rounded-params.ts'

/** A byte order mark, keys with a special meaning in JavaScript, and \u escapes that may spell such a key. */
const DANGEROUS = /^\ufeff|__proto__|constructor|\\u/

/**
 * Returns a function that parses a short body in the same way. Empty bodies are accepted, because
 * operations/validate.ts knows whether the route needs a body.
 */
export function readJsonOnly(app: FastifyInstance): (body: Buffer) => unknown {
  const parse = app.getDefaultJsonParser('error', 'error')
  // Here, keys such as `constructor` may be names in the database. They do no harm, because the schema of
  // putDocumentation never looks up a key on the parsed object.
  const parseNames = app.getDefaultJsonParser('ignore', 'ignore')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined)
    const text = typeof body === 'string' ? body : textOf(body)
    const { namesAsKeys = false, valuesMax = VALUES.few } = request.routeOptions.config
    const refusal = refusalOf(text, valuesMax)
    if (refusal instanceof Promise) {
      void readLong(text, refusal, namesAsKeys).then((value) => done(null, value), done)
    } else if (refusal !== null) done(refusal)
    else {
      const parseAny = namesAsKeys ? parseNames : parse
      void parseAny(request, text, (error, value) => done(error ?? roundedParams(text), value))
    }
  })
  return (body) => {
    const text = textOf(body)
    const refusal = refusalOf(text, VALUES.many)
    if (refusal instanceof Promise) throw new TypeError('a long body must take the ordinary path')
    if (refusal !== null) throw refusal
    let value: unknown
    const done = (error: Error | null, read: unknown): void => {
      if (error !== null) throw error
      value = read
    }
    // Fastify's parser refuses dangerous keys and skips a byte order mark. It does not use its request argument.
    if (DANGEROUS.test(text)) Reflect.apply(parse, app, [null, text, done])
    else value = parseJson(text)
    const rounded = roundedParams(text)
    if (rounded !== null) throw rounded
    return value
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notJson()
  }
}

async function readLong(text: string, scanned: Promise<AppError | null>, namesAsKeys: boolean): Promise<unknown> {
  const refusal = await scanned
  if (refusal !== null) throw refusal
  const rounded = roundedNumbers(text)
  const onNumber = rounded?.note.bind(rounded)
  // Fastify's parser skips a byte order mark too.
  const json = text.startsWith('\ufeff') ? text.slice(1) : text
  const value = await parseInSlices(json, { namesAsKeys, ...(onNumber !== undefined && { onNumber }) }).catch(
    (error: SyntaxError) => {
      // Fastify's parser sets this status. REST and the agent connector have different texts for this error.
      throw Object.assign(error, { statusCode: 400 })
    },
  )
  const refused = rounded?.refusal(value) ?? null
  if (refused !== null) throw refused
  return value
}
