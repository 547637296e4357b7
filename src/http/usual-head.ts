// Pure: reads the head of a usual query: POST to one path, HTTP/1.1, one JSON body of known length, plain headers. Returns null for
// everything else, which node:http then reads. A head that node:http would refuse or read in another way must not pass here:
// usual-head.test.ts compares both.
export interface UsualHead {
  readonly teamId: string
  readonly datasourceId: string
  /** Bytes of the body. */
  readonly length: number
  readonly authorization: string
  readonly userAgent: string | undefined
  readonly requestId: string | undefined
  readonly traceparent: string | undefined
}

/** Longer bodies take the ordinary path, which scans them in slices. */
const BODY_BYTES_MAX = 32_768
const HEADERS_MAX = 50
const LENGTH = /^[1-9]\d{0,4}$/
const JSON_TYPES: ReadonlySet<string> = new Set(['application/json', 'application/json; charset=utf-8'])
const LINE = /^([\w!#$%&'*+.^`|~-]{1,100}):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)[ \t]*$/

/** They change how the request is read or answered. A cross-origin request may need CORS headers. */
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

/** Returns whether the framing of a body by these headers is usual. Absent headers are ''. */
export function isUsualBody(contentType: string, contentLength: string): boolean {
  return JSON_TYPES.has(contentType) && LENGTH.test(contentLength) && Number(contentLength) <= BODY_BYTES_MAX
}

/**
 * Reads the paths of queries. Ids contain only these characters. A URL with percent-encoding or a query string is
 * unusual.
 */
export function pathForm(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, String.raw`([\w-]{1,200})`)}$`)
}

/** `head`: from the first byte of the request to the empty line, which it includes. */
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

/** Returns the headers by their lower-case names. Returns null if one is unusual or occurs twice. */
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
