// Reads the head of a usual query: POST to the path of queries over HTTP/1.1, with plain headers and one JSON body of
// known length. node:http reads all other requests. A head must not be accepted here if node:http would refuse it or
// read it differently (usual-head.test.ts).
export interface UsualHead {
  readonly teamId: string
  readonly datasourceId: string
  /** In bytes. */
  readonly length: number
  readonly authorization: string
  readonly userAgent: string | undefined
  readonly requestId: string | undefined
  readonly traceparent: string | undefined
}

/** A longer body is parsed in slices, which the short path cannot do. */
const BODY_BYTES_MAX = 32_768
const HEADERS_MAX = 50
const LENGTH = /^[1-9]\d{0,4}$/
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/json; charset=utf-8'])
const LINE = /^([\w!#$%&'*+.^`|~-]{1,100}):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)[ \t]*$/

/** Requests with these headers are answered differently. Origin, for example, may need CORS headers. */
const UNUSUAL: ReadonlySet<string> = new Set([
  'transfer-encoding',
  'content-encoding',
  'expect',
  'origin',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
])

/** Pass '' for a missing header. */
export function isUsualBody(contentType: string, contentLength: string): boolean {
  return JSON_TYPES.has(contentType) && LENGTH.test(contentLength) && Number(contentLength) <= BODY_BYTES_MAX
}

/** Matches paths whose ids have only these characters. A URL with percent-encoding or a query string does not match. */
export function pathForm(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, String.raw`([\w-]{1,200})`)}$`)
}

/** `head` includes the empty line at its end. Returns null if the head is unusual. */
export function readUsualHead(head: string, form: RegExp): UsualHead | null {
  const [first = '', ...lines] = head.split('\r\n')
  const target = /^POST (\S+) HTTP\/1\.1$/.exec(first)?.[1]
  const [, teamId, datasourceId] = target === undefined ? [] : (form.exec(target) ?? [])
  if (teamId === undefined || datasourceId === undefined || lines.splice(-2).join('') !== '') return null
  const headers = readLines(lines)
  if (headers === null || !headers.has('host') || (headers.get('connection') ?? KEEPS).toLowerCase() !== KEEPS)
    return null
  const [authorization, length = ''] = [headers.get('authorization'), headers.get('content-length')]
  if (authorization === undefined || !isUsualBody(headers.get('content-type') ?? '', length)) return null
  return {
    ...{ teamId, datasourceId, length: Number(length), authorization, userAgent: headers.get('user-agent') },
    ...{ requestId: headers.get('x-request-id'), traceparent: headers.get('traceparent') },
  }
}

const KEEPS = 'keep-alive'

/** The names are in lower case. Null if a header is malformed, unusual or repeated, or if there are too many. */
function readLines(lines: readonly string[]): ReadonlyMap<string, string> | null {
  const headers = new Map<string, string>()
  if (lines.length > HEADERS_MAX) return null
  for (const line of lines) {
    const [, name = '', value = ''] = LINE.exec(line) ?? []
    const key = name.toLowerCase()
    if (name === '' || UNUSUAL.has(key) || headers.has(key)) return null
    headers.set(key, value)
  }
  return headers
}
