// Says what a caller sees if MongoDB fails a query (docs/errors.md#query_failed): one sentence for each code. The
// server's own text is never shown, because it quotes values and the names of hidden fields and collections.
import { AppError } from '../../../errors.ts'

const LOST = 'The connection to the database was lost.'
const ARGUMENT = 'A stage or operator was given an argument that it does not accept.'
const MEMORY = 'A stage needs more memory than the database allows: sort or group fewer or smaller documents.'
const LONG_ARRAY =
  'An array that the query gathers is too long for the later stages (20,000 elements for $setWindowFields), contains too many arrays for a join, or a stored value is too large to be read so often. Gather fewer documents with $match or $limit first, loop less often over large values, or do less for each element. Or $densify by month, quarter or year found a date after the year 33,658. Or $slice was given a count that is not positive.'
const LONG_RANGE = '$range makes at most 10,000 elements, and its step must not be 0.'
const PATTERN = 'A regular expression is not valid, or took too many steps.'
const DIVISION = 'A number was divided by zero or by a value that is not a number.'
const NUMBER = 'A number is out of the range of its type.'
const CONVERSION = 'A value cannot be converted to the requested type; use $convert with onError.'
const ARITHMETIC = 'An operator was given a value of a type that it does not accept.'

const SENTENCES: Readonly<Record<number, string>> = {
  2: ARGUMENT,
  9: ARGUMENT,
  13: 'The login of this datasource is not allowed to read something that this query needs.',
  14: ARITHMETIC,
  15: NUMBER,
  28: 'A path does not fit the structure of the documents.',
  40: 'Two paths of one stage conflict with each other.',
  52: 'A field name begins with $, which is not allowed here.',
  139: 'The documents cannot be joined by these paths.',
  146: MEMORY,
  167: 'A view cannot be used in this query.',
  168: ARGUMENT,
  224: 'The database does not run this query in its current feature compatibility version.',
  238: 'The database’s version does not support something that the query uses.',
  241: CONVERSION,
  292: MEMORY,
  303: 'The database’s version does not support something that the query uses.',
  307: 'Views are nested too deeply.',
  325: 'A document or array is nested deeper than the database allows.',
  5976: ARGUMENT,
  8000: 'The login of this datasource is not allowed to read something that this query needs.',
  10334: 'A document exceeds the 16 MB that the database allows.',
  15998: 'A path contains an empty name.',
  16004: ARITHMETIC,
  16006: 'The query uses a value as a date that is not a date.',
  16007: 'The query uses a value as a string that is not a string.',
  16020: ARGUMENT,
  16389: 'The result exceeds the 16 MB that the database allows.',
  16554: ARITHMETIC,
  16555: ARITHMETIC,
  16556: ARITHMETIC,
  16608: DIVISION,
  16609: DIVISION,
  16610: DIVISION,
  16611: DIVISION,
  16702: '$concat takes strings only; a value is not a string.',
  16819: MEMORY,
  16820: MEMORY,
  16823: MEMORY,
  16945: MEMORY,
  16947: MEMORY,
  17053: ARGUMENT,
  17124: '$size takes an array; a value is not an array.',
  17276: 'A variable is not defined where it is used.',
  17419: 'A document exceeds the 16 MB that the database allows.',
  28651: NUMBER,
  28664: '$slice takes an array; a value is not an array.',
  28689: '$arrayElemAt takes an array; a value is not an array.',
  28690: ARGUMENT,
  28714: '$sqrt does not take a negative number.',
  28724: ARITHMETIC,
  28729: LONG_ARRAY,
  28756: '$log takes positive numbers only.',
  28758: '$log takes a positive base other than 1.',
  28761: '$log10 takes positive numbers only.',
  28764: '$pow does not take a negative exponent of zero.',
  28765: ARITHMETIC,
  28766: '$ln takes positive numbers only.',
  28769: '$divide divided by zero.',
  31034: 'A key has the wrong type.',
  31095: PATTERN,
  31249: 'Two paths of one $project conflict with each other.',
  31250: 'Two paths of one $project conflict with each other.',
  34443: ARGUMENT,
  34449: LONG_RANGE,
  34453: ARGUMENT,
  34471: '$in takes an array; a value is not an array.',
  40066: '$switch has no matching branch and no default.',
  40081: '$in takes an array; a value is not an array.',
  40228: 'The new root must be a document; a value is not a document.',
  40085: '$split takes strings only; a value is not a string.',
  40386: '$arrayToObject takes pairs; a value is not a pair.',
  40390: '$objectToArray takes a document; a value is not a document.',
  40394: '$arrayToObject takes pairs of a string and a value.',
  40400: '$mergeObjects takes documents only; a value is not a document.',
  40515: ARITHMETIC,
  40517: 'A part of a date has an invalid value.',
  50750: '$type or a similar operator was given an argument that it does not accept.',
  50752: '$trim takes a string; a value is not a string.',
  50989: ARITHMETIC,
  51044: '$round takes a number; a value is not a number.',
  51091: PATTERN,
  51103: PATTERN,
  51104: PATTERN,
  51105: PATTERN,
  51108: PATTERN,
  51109: PATTERN,
  51111: PATTERN,
  51156: PATTERN,
  51246: '$redact and similar stages take DESCEND, PRUNE or KEEP only.',
}

/**
 * Codes that mean that the server itself has ended the query. Code 202 is missing: it means that a router waited too
 * long for another server.
 */
const TIMEOUTS = new Set([50, 262])
const GONE = new Set([6, 7, 63, 89, 91, 133, 189, 9001, 10058, 10107, 11600, 11602, 13435, 13436])
const BUSY = new Set([202, 317, 462])

/**
 * Returns the error that run() throws. An AppError stays unchanged. Any other error becomes the cause of a sentence for
 * its code.
 */
export function failure(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (!(error instanceof Error)) return internal(error)
  const code: unknown = Reflect.get(error, 'code')
  if (error.name === 'MongoServerError' || (typeof code === 'number' && /^Mongo/.test(error.name))) {
    return fromServer(error, typeof code === 'number' ? code : 0)
  }
  // If a socket breaks while the library writes to it, the library passes on the system's error.
  if (/^Mongo/.test(error.name) || 'syscall' in error)
    return new AppError('DATASOURCE_UNAVAILABLE', LOST, { cause: error })
  if (/^BSON/.test(error.name))
    return new AppError('QUERY_FAILED', 'The query cannot be encoded as BSON.', { cause: error })
  return internal(error)
}

/** True if the client cannot be used after this error. */
export function isLost(error: unknown): boolean {
  return error instanceof AppError && error.code === 'DATASOURCE_UNAVAILABLE'
}

function timedOut(cause: unknown): AppError {
  return new AppError('QUERY_TIMEOUT', 'The query took too long and was cancelled in the database.', { cause })
}

/** The collection was dropped after introspection. */
export function schemaStale(cause?: unknown): AppError {
  const message =
    'The database changed after it was introspected: a collection of this query no longer exists. An administrator must introspect the database again.'
  return new AppError('SCHEMA_STALE', message, { cause })
}

function fromServer(error: Error, code: number): AppError {
  if (TIMEOUTS.has(code)) return timedOut(error)
  if (code === 18) {
    return new AppError('DATASOURCE_UNAVAILABLE', 'The database refuses the login of this datasource.', {
      cause: error,
    })
  }
  if (GONE.has(code)) return new AppError('DATASOURCE_UNAVAILABLE', LOST, { cause: error })
  if (BUSY.has(code)) {
    return new AppError('QUERY_FAILED', 'The database is too busy; try again.', { cause: error })
  }
  if (code === 11601) {
    return new AppError('QUERY_FAILED', 'The query was ended in the database.', { cause: error })
  }
  const sentence = SENTENCES[code] ?? `The database failed the query (MongoDB error ${code}).`
  return new AppError('QUERY_FAILED', sentence, { cause: error })
}

function internal(cause: unknown): AppError {
  return new AppError('INTERNAL', 'Something went wrong here.', { cause })
}
