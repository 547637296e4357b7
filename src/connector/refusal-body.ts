// Converts an error to the body of a refusal. After an unexpected error, the caller gets only the request id.
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

export function refusalBody({ message, code, extra }: AppError): Readonly<Record<string, unknown>> {
  return { error: message, code, ...extra }
}
