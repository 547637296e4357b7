// Turns any error into the body of a refusal, the same as REST answers. An unexpected error is logged under the request's id,
// and only that id leaves.
import { AppError } from '../errors.ts'

export interface DefectLog {
  error(detail: object, message: string): void
}

export function refusalOf(error: unknown, log: DefectLog, requestId: string): AppError {
  if (error instanceof AppError && error.code !== 'INTERNAL') return error
  log.error({ requestId, err: error }, 'a defect')
  return new AppError(
    'INTERNAL',
    `The service failed to answer because of a defect. The server log has the details under ${requestId}.`,
    { extra: { requestId } },
  )
}

/** Returns {error, code, …}, as REST writes it. */
export function refusalBody({ message, code, extra }: AppError): Readonly<Record<string, unknown>> {
  return { error: message, code, ...extra }
}
