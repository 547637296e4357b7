// A BigQuery double in this process, because the real BigQuery does not run offline. It is as strict as the
// documentation of the REST API, and every response follows the documentation. None was recorded. The double lists each
// breach by a request in `violations`, and asks a Brain (bigquery-evaluator.ts) about queries.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Brain, Evaluation, WireError, WireField, WireValue } from './bigquery-evaluator.ts'
import type { TestDoor } from './bigquery-door.ts'

/** What tables.get returns, without the fields that the double adds. */
export interface WireTableResource {
  readonly creationTime?: string
  /** The default is TABLE. */
  readonly type?: 'TABLE' | 'VIEW' | 'MATERIALIZED_VIEW' | 'EXTERNAL' | 'SNAPSHOT'
  readonly schema?: { readonly fields: readonly WireField[] }
  readonly numRows?: string
  readonly [more: string]: unknown
}

export interface DoubleDataset {
  readonly location?: string
  readonly isCaseInsensitive?: boolean
  readonly tables: Readonly<Record<string, WireTableResource>>
}

export interface DoubleOptions {
  readonly project: string
  readonly location: string
  readonly datasets: Readonly<Record<string, DoubleDataset>>
  readonly brain: Brain
  readonly pageRows?: number
  readonly pageItems?: number
  /** Checks tokens. Without it, no token may be sent. */
  readonly door?: TestDoor
}

export interface DoubleRequest {
  readonly kind:
    'token' | 'datasets' | 'dataset' | 'tables' | 'table' | 'dry run' | 'run' | 'results' | 'cancel' | 'other'
  readonly method: string
  readonly url: URL
  readonly body: Json
  readonly authorization: string | undefined
}

/** Replaces the normal response: a status and a body, no response at all, or a closed socket. */
export type Reply =
  | { readonly status: number; readonly body: unknown; readonly headers?: Readonly<Record<string, string>> }
  | 'hang'
  | 'reset'

// Tests read fields that they expect in the request.
// oxlint-disable-next-line typescript/no-explicit-any
type Json = any

interface Place {
  readonly hostname: string
  readonly port: string
}

interface Job {
  readonly id: string
  readonly evaluation: Evaluation
  /** The number of responses that still report the job as incomplete. */
  waits: number
  cancelled: boolean
}

interface Rigged {
  readonly fits: (request: DoubleRequest) => boolean
  readonly reply: Reply | ((request: DoubleRequest) => Reply)
  times: number
}

export class BigQueryDouble implements AsyncDisposable {
  readonly url: string
  readonly requests: DoubleRequest[] = []
  /** Breaches of the REST API, or of what the service itself promises. */
  readonly violations: string[] = []
  readonly options: DoubleOptions
  readonly #server: Server
  readonly #jobs = new Map<string, Job>()
  readonly #dry = new Set<string>()
  readonly #requestIds = new Map<string, Job>()
  readonly #rigged: Rigged[] = []
  #jobCount = 0

  constructor(server: Server, options: DoubleOptions) {
    this.#server = server
    this.options = options
    this.url = `http://127.0.0.1:${portOf(server)}`
    server.on('request', (req, res) => void this.#serve(req, res))
  }

  get working(): number {
    return [...this.#jobs.values()].filter((job) => 'endless' in job.evaluation && !job.cancelled).length
  }

  get cancelled(): number {
    return [...this.#jobs.values()].filter((job) => job.cancelled).length
  }

  sockets(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.getConnections((error, count) => (error === null ? resolve(count) : reject(error)))
    })
  }

  count(kind: DoubleRequest['kind']): number {
    return this.requests.filter((each) => each.kind === kind).length
  }

  /** Sends this response to the next `times` matching requests. */
  rig(fits: DoubleRequest['kind'] | ((request: DoubleRequest) => boolean), reply: Rigged['reply'], times = 1): void {
    const isIt = typeof fits === 'string' ? (request: DoubleRequest) => request.kind === fits : fits
    this.#rigged.push({ fits: isIt, reply, times })
  }

  unrig(): void {
    this.#rigged.length = 0
  }

  /** The `connector` of a driver. It connects to the double instead of Google's addresses. */
  readonly connector = (at: Place, callback: (...found: [null, Socket] | [Error, null]) => void): void => {
    const isGoogle = at.hostname.endsWith('.googleapis.com')
    const socket = isGoogle ? connect(portOf(this.#server), '127.0.0.1') : connect(Number(at.port), at.hostname)
    socket.once('error', (error) => callback(error, null))
    socket.once('connect', () => callback(null, socket))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    try {
      const request = await this.#read(req)
      this.requests.push(request)
      const rigged = this.#rigged.find((each) => each.times > 0 && each.fits(request))
      if (rigged !== undefined) rigged.times--
      const reply =
        rigged === undefined
          ? await this.#answer(request)
          : typeof rigged.reply === 'function'
            ? rigged.reply(request)
            : rigged.reply
      if (reply === 'hang') return
      if (reply === 'reset') return void req.socket.destroy()
      const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body)
      res.writeHead(reply.status, { 'content-type': 'application/json; charset=UTF-8', ...reply.headers })
      res.end(text)
    } catch (error) {
      this.violations.push(`the double broke: ${String(error)}`)
      req.socket.destroy()
    }
  }

  async #read(req: IncomingMessage): Promise<DoubleRequest> {
    const parts: Buffer[] = []
    for await (const part of req) parts.push(part as Buffer)
    const raw = Buffer.concat(parts).toString()
    const url = new URL(req.url ?? '/', `http://${req.headers.host ?? ''}`)
    const method = req.method ?? ''
    const isForm = req.headers['content-type'] === 'application/x-www-form-urlencoded'
    const body: Json = isForm ? Object.fromEntries(new URLSearchParams(raw)) : raw === '' ? null : JSON.parse(raw)
    const { authorization } = req.headers
    const request = { kind: kindOf(method, url, body), method, url, body, authorization }
    const host = request.kind === 'token' ? 'oauth2.googleapis.com' : 'bigquery.googleapis.com'
    if (this.options.door !== undefined) this.#check(req.headers.host === host, `asked ${req.headers.host} for ${url}`)
    return request
  }

  async #answer(request: DoubleRequest): Promise<Reply> {
    const { door, project } = this.options
    if (request.kind === 'token') {
      this.#check(door !== undefined, 'a token was requested without a door')
      return door?.exchange(request.body) ?? failed({ status: 400, reason: 'invalid', message: 'no door' })
    }
    if (door === undefined) this.#check(request.authorization === undefined, 'a token sent where none may be')
    else if (!door.admits(request.authorization)) {
      return failed({ status: 401, reason: 'authError', message: 'Invalid Credentials' })
    }
    const [projects, named, room, id, inner, innerId] = request.url.pathname
      .replace(/^\/bigquery\/v2\//, '')
      .split('/')
      .map(decodeURIComponent)
    this.#check(request.url.pathname.startsWith('/bigquery/v2/projects/'), `a path ${request.url.pathname}`)
    if (projects !== 'projects' || named !== project)
      return failed({ status: 404, reason: 'notFound', message: `Not found: Project ${named}` })
    if (room === 'datasets' && id === undefined) return this.#datasets(request)
    if (room === 'datasets' && inner === undefined) return this.#dataset(id ?? '')
    if (room === 'datasets' && inner === 'tables') return this.#tables(request, id ?? '', innerId)
    if (request.kind === 'dry run') return await this.#dryRun(request)
    if (request.kind === 'run') return await this.#run(request)
    if (request.kind === 'results') return await this.#results(request, id ?? '')
    if (request.kind === 'cancel') return this.#cancel(request, id ?? '')
    this.violations.push(`unexpected request ${request.method} ${request.url.pathname}`)
    return failed({ status: 404, reason: 'notFound', message: 'Not found' })
  }

  #datasets({ url }: DoubleRequest): Reply {
    const { project, location, datasets } = this.options
    const all = Object.entries(datasets).map(([datasetId, dataset]) => ({
      kind: 'bigquery#dataset',
      id: `${project}:${datasetId}`,
      datasetReference: { projectId: project, datasetId },
      location: dataset.location ?? location,
    }))
    const { items, next } = this.#page(all, url)
    return ok({ kind: 'bigquery#datasetList', ...(items.length > 0 && { datasets: items }), ...next })
  }

  #dataset(datasetId: string): Reply {
    const { project, location, datasets } = this.options
    const dataset = datasets[datasetId]
    if (dataset === undefined)
      return failed({ status: 404, reason: 'notFound', message: `Not found: Dataset ${project}:${datasetId}` })
    const { tables: _, ...resource } = dataset
    const datasetReference = { projectId: project, datasetId }
    return ok({ kind: 'bigquery#dataset', id: `${project}:${datasetId}`, datasetReference, location, ...resource })
  }

  #tables({ url }: DoubleRequest, datasetId: string, tableId: string | undefined): Reply {
    const { project, location, datasets } = this.options
    const dataset = datasets[datasetId]
    if (dataset === undefined)
      return failed({ status: 404, reason: 'notFound', message: `Not found: Dataset ${project}:${datasetId}` })
    if (tableId !== undefined) {
      const table = dataset.tables[tableId]
      if (table === undefined)
        return failed({
          status: 404,
          reason: 'notFound',
          message: `Not found: Table ${project}:${datasetId}.${tableId}`,
        })
      const tableReference = { projectId: project, datasetId, tableId }
      const head = { kind: 'bigquery#table', id: `${project}:${datasetId}.${tableId}`, tableReference }
      return ok({ ...head, type: 'TABLE', location: dataset.location ?? location, ...table })
    }
    const all = Object.entries(dataset.tables).map(([name, table]) => ({
      kind: 'bigquery#table',
      id: `${project}:${datasetId}.${name}`,
      tableReference: { projectId: project, datasetId, tableId: name },
      type: table.type ?? 'TABLE',
      ...(table.creationTime !== undefined && { creationTime: table.creationTime }),
    }))
    const { items, next } = this.#page(all, url)
    return ok({
      kind: 'bigquery#tableList',
      ...(items.length > 0 && { tables: items }),
      ...next,
      totalItems: all.length,
    })
  }

  #page<T>(all: readonly T[], url: URL): { items: readonly T[]; next: object } {
    const from = Number(url.searchParams.get('pageToken')?.slice(1) ?? 0)
    const size = Math.min(Number(url.searchParams.get('maxResults') ?? 50), this.options.pageItems ?? 1000)
    const to = from + size
    return { items: all.slice(from, to), next: to < all.length ? { nextPageToken: `p${to}` } : {} }
  }

  async #dryRun({ body }: DoubleRequest): Promise<Reply> {
    const { project, location } = this.options
    const { query } = body.configuration
    this.#check(body.jobReference?.projectId === project, 'a dry run without a project')
    this.#checkQuery(query, 'dry run')
    const wrong = this.#misplaced(body.jobReference?.location)
    if (wrong !== null) return wrong
    const analysis = await this.options.brain.analyze(query.query, query)
    if ('error' in analysis) return failed(analysis.error)
    this.#dry.add(asWhole(query))
    return ok({
      kind: 'bigquery#job',
      configuration: { ...body.configuration, jobType: 'QUERY' },
      jobReference: { projectId: project, location },
      status: { state: 'DONE' },
      statistics: {
        totalBytesProcessed: analysis.statistics.totalBytesProcessed ?? '0',
        query: { cacheHit: false, ...analysis.statistics },
      },
    })
  }

  async #run({ body }: DoubleRequest): Promise<Reply> {
    this.#checkQuery(body, 'run')
    this.#check(this.#dry.has(asWhole(body)), `a run without an earlier dry run: ${body.query}`)
    this.#check(/^[1-9]\d*$/.test(body.maximumBytesBilled), `maximumBytesBilled ${body.maximumBytesBilled}`)
    this.#check(/^[1-9]\d*$/.test(body.jobTimeoutMs), `jobTimeoutMs ${body.jobTimeoutMs}`)
    this.#check(Number.isInteger(body.maxResults) && body.maxResults > 1, `maxResults ${body.maxResults}`)
    this.#check(body.formatOptions?.useInt64Timestamp === true, 'timestamps as floats')
    this.#check(/^[\w-]{8,36}$/.test(body.requestId), `requestId ${body.requestId}`)
    const labels = Object.entries(body.labels ?? {}).flat()
    this.#check(labels.length > 0 && labels.every((each) => /^[a-z0-9_-]{0,63}$/.test(String(each))), 'labels')
    const wrong = this.#misplaced(body.location)
    if (wrong !== null) return wrong
    // Retries rely on this rule: the same requestId means the same job.
    const job = this.#requestIds.get(body.requestId) ?? (await this.#newJob(body))
    this.#requestIds.set(body.requestId, job)
    return await this.#answerOf(job, 0, body.maxResults, Number(body.timeoutMs ?? 10_000))
  }

  async #newJob(body: Json): Promise<Job> {
    const evaluation = await this.options.brain.evaluate(body.query, body)
    const waits = 'waits' in evaluation ? evaluation.waits : 0
    const job = { id: `job_${++this.#jobCount}`, waits, cancelled: false, evaluation: settledOf(evaluation) }
    this.#jobs.set(job.id, job)
    return job
  }

  async #results({ url }: DoubleRequest, id: string): Promise<Reply> {
    const job = this.#jobs.get(id)
    const query = url.searchParams
    this.#check(query.get('location') === this.options.location, `results from ${query.get('location')}`)
    this.#check(query.get('formatOptions.useInt64Timestamp') === 'true', 'timestamps as floats')
    if (job === undefined) return failed({ status: 404, reason: 'notFound', message: `Not found: Job ${id}` })
    const from = Number(query.get('pageToken')?.slice(1) ?? 0)
    return await this.#answerOf(job, from, Number(query.get('maxResults')), Number(query.get('timeoutMs') ?? 10_000))
  }

  #cancel({ url }: DoubleRequest, id: string): Reply {
    const job = this.#jobs.get(id)
    this.#check(url.searchParams.get('location') === this.options.location, 'a cancel without its location')
    if (job === undefined) return failed({ status: 404, reason: 'notFound', message: `Not found: Job ${id}` })
    job.cancelled = true
    return ok({ kind: 'bigquery#jobCancelResponse', job: { status: { state: 'RUNNING' } } })
  }

  async #answerOf(job: Job, from: number, wanted: number, timeoutMs: number): Promise<Reply> {
    const { project, location } = this.options
    const jobReference = { projectId: project, jobId: job.id, location }
    const open = { kind: 'bigquery#queryResponse', jobReference, jobComplete: false }
    const { evaluation } = job
    if (job.waits > 0) {
      job.waits--
      return ok(open)
    }
    if ('endless' in evaluation) {
      const until = performance.now() + timeoutMs
      while (!job.cancelled && performance.now() < until) await sleep(5)
      if (!job.cancelled) return ok(open)
      return failed({
        status: 499,
        reason: 'stopped',
        message: 'Job execution was cancelled: User requested cancellation',
      })
    }
    if ('error' in evaluation) {
      const { error, late } = evaluation
      if (late !== true) return failed(error)
      return ok({ ...open, jobComplete: true, errors: [{ reason: error.reason, message: error.message }] })
    }
    assert.ok('rows' in evaluation)
    const to = Math.min(from + Math.min(wanted, this.options.pageRows ?? 100_000), evaluation.rows.length)
    const rows = evaluation.rows.slice(from, to).map((row) => ({ f: row.map((v: WireValue) => ({ v })) }))
    return ok({
      ...open,
      jobComplete: true,
      schema: evaluation.schema,
      totalRows: String(evaluation.rows.length),
      totalBytesProcessed: '0',
      cacheHit: false,
      ...(rows.length > 0 && { rows }),
      ...(to < evaluation.rows.length && { pageToken: `p${to}` }),
    })
  }

  #checkQuery(query: Json, where: string): void {
    const allowed = where === 'run' ? RUN_FIELDS : DRY_RUN_FIELDS
    for (const field of Object.keys(query)) this.#check(allowed.has(field), `${field} in a ${where}`)
    this.#check(query.useLegacySql === false, `useLegacySql in a ${where}`)
    this.#check(typeof query.query === 'string' && query.query !== '', `no text in a ${where}`)
    this.#check(!hasComment(query.query), `a comment in a ${where}: ${query.query}`)
    this.#checkParams(query, where)
  }

  #checkParams({ parameterMode, queryParameters }: Json, where: string): void {
    if (parameterMode === undefined && queryParameters === undefined) return
    this.#check(['NAMED', 'POSITIONAL'].includes(parameterMode), `parameterMode ${parameterMode} in a ${where}`)
    this.#check(Array.isArray(queryParameters) && queryParameters.length > 0, `no queryParameters in a ${where}`)
    for (const { name, parameterType, parameterValue } of queryParameters ?? []) {
      this.#check((typeof name === 'string') === (parameterMode === 'NAMED'), `a parameter ${name} in a ${where}`)
      this.#check(typeof parameterType?.type === 'string', `a parameter without a type in a ${where}`)
      const values = parameterValue?.arrayValues?.map((each: Json) => each.value) ?? [parameterValue?.value]
      const isText = (value: unknown) => value === null || typeof value === 'string'
      this.#check(values.every(isText), `a parameter that is no string in a ${where}`)
    }
  }

  #misplaced(location: unknown): Reply | null {
    if (typeof location === 'string' && location.toUpperCase() === this.options.location.toUpperCase()) return null
    const message = `Not found: Dataset ${this.options.project}:shop was not found in location ${String(location)}`
    return failed({ status: 404, reason: 'notFound', message })
  }

  #check(holds: boolean, breach: string): void {
    if (!holds) this.violations.push(breach)
  }
}

export async function startBigQuery(options: DoubleOptions): Promise<BigQueryDouble> {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new BigQueryDouble(server, options)
}

export function failed({ status, reason, message }: WireError): Exclude<Reply, string> {
  const errors = [{ domain: 'global', reason, message }]
  return { status, body: { error: { code: status, message, errors, status: 'INVALID_ARGUMENT' } } }
}

export function ok(body: object): Exclude<Reply, string> {
  return { status: 200, body }
}

const RUN_FIELDS = new Set(
  'query useLegacySql maximumBytesBilled jobTimeoutMs timeoutMs useQueryCache location maxResults labels requestId formatOptions createSession parameterMode queryParameters'.split(
    ' ',
  ),
)
const DRY_RUN_FIELDS = new Set(
  'query useLegacySql useQueryCache maximumBytesBilled parameterMode queryParameters'.split(' '),
)

/** Returns the same key for the dry run and the run of a query. */
function asWhole({ query, parameterMode, queryParameters }: Json): string {
  return JSON.stringify([query, parameterMode, queryParameters])
}

function settledOf(evaluation: Evaluation): Evaluation {
  return 'waits' in evaluation ? settledOf(evaluation.then) : evaluation
}

function kindOf(method: string, url: URL, body: Json): DoubleRequest['kind'] {
  const path = url.pathname
  if (path === '/token') return 'token'
  if (method === 'GET' && /\/datasets$/.test(path)) return 'datasets'
  if (method === 'GET' && /\/datasets\/[^/]+$/.test(path)) return 'dataset'
  if (method === 'GET' && /\/tables$/.test(path)) return 'tables'
  if (method === 'GET' && /\/tables\/[^/]+$/.test(path)) return 'table'
  if (method === 'POST' && /\/jobs$/.test(path) && body?.configuration?.dryRun === true) return 'dry run'
  if (method === 'POST' && /\/queries$/.test(path)) return 'run'
  if (method === 'GET' && /\/queries\/[^/]+$/.test(path)) return 'results'
  if (method === 'POST' && /\/jobs\/[^/]+\/cancel$/.test(path)) return 'cancel'
  return 'other'
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}

const LITERAL = /(?:[rRbB]{0,2})(?:'''[^]*?'''|"""[^]*?"""|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|`[^`]*`/g

function hasComment(sql: string): boolean {
  return /--|#|\/\*/.test(sql.replace(LITERAL, "''"))
}
