// Refusals of several rooms about what is shown, so that each reads the same wherever it is met.
import { AppError } from '../errors.ts'

export function notIntrospected(): AppError {
  return new AppError('NOT_CONNECTED', 'This datasource has not been introspected yet, so nothing is known of it.')
}

export function disabled(): AppError {
  return new AppError('DATASOURCE_DISABLED', 'This datasource is disabled. A manager of the team can enable it.')
}
