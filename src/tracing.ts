// Sends spans to OpenTelemetry. Each sampled request has a span. A query also has spans for the guard, for the wait for
// a connection, and for the database. Spans are created after the answer, from recorded times, so that no query waits
// for them. They contain no text, name or value of a caller or a database.
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace, TraceFlags, type Context } from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import type { Trace } from './auth/caller.ts'
import { VERSION, type Config } from './config.ts'

export interface TracedRequest {
  readonly requestId: string
  readonly method: string
  readonly operation: string
  readonly status: number
  readonly code: string | null
  readonly durationMs: number
  /** The times of the query, if the request is a query. */
  readonly trace?: Trace | null | undefined
  /** The W3C Trace Context that a trusted proxy has sent. */
  readonly traceparent?: string | undefined
}

export interface Tracing extends AsyncDisposable {
  request(traced: TracedRequest): void
}

/** The maximum number of spans that wait to be sent. More spans are dropped. */
const WAITING_MAX = 2_048
const EVERY_MS = 2_000
/** The timeout for sending spans, and so the longest wait of a shutdown for the last ones. */
const LAST_MS = 3_000

export function openTracing(settings: NonNullable<Config['otel']>): Tracing {
  const exporter = new OTLPTraceExporter({
    url: settings.url,
    headers: { ...settings.headers },
    timeoutMillis: LAST_MS,
  })
  const sampler = settings.ratio === null ? new AlwaysOnSampler() : new TraceIdRatioBasedSampler(settings.ratio)
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.version': VERSION,
      ...settings.resource,
      'service.name': settings.serviceName,
    }),
    sampler: new ParentBasedSampler({ root: sampler }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: WAITING_MAX,
        scheduledDelayMillis: EVERY_MS,
        exportTimeoutMillis: LAST_MS,
      }),
    ],
  })
  const tracer = provider.getTracer('vitrine', VERSION)
  /** Converts a time of performance.now() to epoch milliseconds. */
  const epochOf = (at: number) => Date.now() + at - performance.now()
  return {
    request({ requestId, method, operation, status, code, durationMs, trace: noted, traceparent }) {
      const endedAt = performance.now()
      const span = tracer.startSpan(
        operation,
        {
          kind: SpanKind.SERVER,
          startTime: epochOf(endedAt - durationMs),
          attributes: {
            'http.request.method': method,
            'http.response.status_code': status,
            'vitrine.operation': operation,
            'vitrine.request_id': requestId,
            ...(code !== null && { 'error.type': code }),
          },
        },
        parentOf(traceparent),
      )
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      const within = trace.setSpan(ROOT_CONTEXT, span)
      const part = (name: string, kind: SpanKind, from: number, to: number, attributes = {}) => {
        tracer.startSpan(name, { kind, startTime: epochOf(from), attributes }, within).end(epochOf(to))
      }
      const query = noted?.query ?? null
      if (query !== null) {
        const { guardedAt, leasedAt, ranAt } = query
        const attributes = { 'db.system.name': SYSTEMS[query.kind] ?? 'other_sql' }
        if (guardedAt > 0) part('guard', SpanKind.INTERNAL, query.began, guardedAt, attributes)
        if (leasedAt > 0) {
          part('wait for a connection', SpanKind.INTERNAL, guardedAt, leasedAt, attributes)
          part('database', SpanKind.CLIENT, leasedAt, ranAt > 0 ? ranAt : query.endedAt, attributes)
        }
      }
      span.end(epochOf(endedAt))
    },
    async [Symbol.asyncDispose]() {
      // A shutdown must succeed even if the collector cannot be reached.
      await provider.shutdown().catch(() => undefined)
    },
  }
}

/** The names from OpenTelemetry's semantic conventions. */
const SYSTEMS: Readonly<Record<string, string>> = {
  POSTGRES: 'postgresql',
  MONGODB: 'mongodb',
  BIGQUERY: 'gcp.bigquery',
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

function parentOf(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags = '00'] = TRACEPARENT.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return ROOT_CONTEXT
  const traceFlags = Number.parseInt(flags, 16) & TraceFlags.SAMPLED
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
}
