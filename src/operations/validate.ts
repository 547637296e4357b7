// Validates the query string and the body with the schemas of the route. Throws INVALID_REQUEST with one line per
// problem. No value is guessed or ignored. Only query parameters are converted, because they arrive as strings.
import type { ZodError, ZodType } from 'zod'
import { z } from 'zod'
import { BRIEF } from '../contract/long-lists.ts'
import type { Route } from '../contract/route-type.ts'
import { invalidRequest, type Issue } from '../errors.ts'

const Nothing = z.strictObject({})
const DETAILS_MAX = 50
const DETAIL_LENGTH_MAX = 300

/** Throws INVALID_REQUEST. A route that declares no query parameters accepts none. */
export function readQuery(route: Route, query: unknown): unknown {
  if (route.query === undefined && isEmpty(query)) return {}
  return read(route.query ?? Nothing, { ...asRecord(query) }, 'query parameter')
}

/** Throws INVALID_REQUEST. */
export function readBody(route: Pick<Route, 'body' | 'bodyOptional' | 'rawBody'>, body: unknown): unknown {
  if (route.rawBody === true) return body
  // A missing body is an empty object, but a null body is invalid.
  const given = body === undefined ? {} : body
  if (route.body === undefined) return void read(Nothing, given, 'field')
  if (body === undefined && route.bodyOptional !== true) throw invalidRequest(['body: a JSON body is required'])
  return read(route.body, given, 'field')
}

function isEmpty(value: unknown): boolean {
  for (const _key in asRecord(value)) return false
  return true
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}

function read(schema: ZodType, value: unknown, what: string): unknown {
  const result = schema.safeParse(value, BRIEF)
  if (result.success) return result.data
  const issues = issuesOf(result.error, what)
  throw invalidRequest(
    issues.map(({ path, message }) => shortened(`${at(path)}: ${message}`)),
    undefined,
    issues,
  )
}

function issuesOf(error: ZodError, what: string): Issue[] {
  return error.issues
    .slice(0, DETAILS_MAX)
    .flatMap((issue) => {
      if (issue.code === 'unrecognized_keys')
        return issue.keys
          .slice(0, DETAILS_MAX)
          .map((key) => ({ path: [...issue.path, key], message: `unknown ${what}` }))
      return { path: issue.path, message: issue.message }
    })
    .slice(0, DETAILS_MAX)
    .map(({ path, message }) => ({
      path: path.map((key) => (typeof key === 'number' ? key : shortened(String(key)))),
      message: shortened(message),
    }))
}

function shortened(line: string): string {
  return line.length > DETAIL_LENGTH_MAX ? `${line.slice(0, DETAIL_LENGTH_MAX).toWellFormed()}…` : line
}

/** Returns for example `tables[0].columns`, or `body` for the whole body. */
function at(path: Issue['path']): string {
  if (path.length === 0) return 'body'
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return text === '' ? key : `${text}.${key}`
  }, '')
}
