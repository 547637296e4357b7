// A dry run reports how many bytes a query would read, without reading them. A query that would read too many bytes is
// refused.
import { AppError } from '../../../errors.ts'

/** `estimate` is in bytes, or null if BigQuery says only that the query is over the limit. */
export function overCost(estimate: number | null, limit: number, cause?: unknown): AppError {
  const would = estimate === null ? 'read more' : `read ${bytesText(estimate)}, more`
  return new AppError('QUERY_DENIED', `This query would ${would} than the limit of ${bytesText(limit)}.`, {
    extra: {
      blocked: { kind: 'cost', name: 'bytes processed' },
      hint: 'Read less: name the columns you need instead of *, and filter on the partitioning column of a table.',
      ...(estimate === null ? {} : { estimate }),
      limit,
    },
    cause,
  })
}

function bytesText(bytes: number): string {
  return `${bytes} bytes`
}
