// What a caller is told when MongoDB refuses or fails (docs/errors.md#query_failed): a sentence of ours per code.
// A server's own text never passes: it quotes values, and names of fields and collections that are hidden.
import { AppError } from '../../../errors.ts'

const LOST = 'The connection to the database was lost.'
const ARGUMENT = 'An argument of a stage or operator is not one that it takes.'
const MEMORY = 'A stage needs more memory than the database gives it; sort or group fewer or smaller documents.'
const LONG_ARRAY =
  'An array that the query gathers from documents is longer than it may work on (20,000 elements where $setWindowFields gathers it), or a stored value is larger than it may read so often: gather fewer documents ($match or $limit first), loop less often over large values, or do less for each element. Or $slice was given a count that is not positive.'
const LONG_RANGE = '$range makes at most 10,000 elements, and takes no step of 0.'
const PATTERN = 'A regular expression is not valid, or took too many steps.'
const DIVISION = 'Division by zero, or by what is no number.'
const NUMBER = 'A number is out of the range of its type.'
const CONVERSION = 'A value cannot be converted to the type it is converted to; $convert with onError goes on instead.'
const ARITHMETIC = 'An operator was given a value of a type that it does not take.'

const SENTENCES: Readonly<Record<number, string>> = {
  2: ARGUMENT,
  9: ARGUMENT,
  13: 'The login of this datasource may not read something this query needs.',
  14: ARITHMETIC,
  15: NUMBER,
  28: 'A path cannot be walked through the documents as they are.',
  40: 'Two paths of one stage exclude each other.',
  52: 'A name begins with $, which no name of a field may here.',
  139: 'The documents are joined by paths that cannot be joined.',
  146: MEMORY,
  167: 'A view stands on what no query may read through it.',
  168: ARGUMENT,
  224: 'The database does not serve this query in its present compatibility version.',
  238: 'The database’s version does not have something that the query uses.',
  241: CONVERSION,
  292: MEMORY,
  303: 'The database’s version does not have something that the query uses.',
  307: 'Views stand on one another too deeply.',
  325: 'A document or array is nested deeper than the database allows.',
  5976: ARGUMENT,
  8000: 'The login of this datasource may not read something this query needs.',
  10334: 'A document grew over the 16 MB that the database allows.',
  15998: 'A path has an empty part.',
  16004: ARITHMETIC,
  16006: 'A value is no date, and the query uses it as one.',
  16007: 'A value is no text, and the query uses it as one.',
  16020: ARGUMENT,
  16389: 'The answer grew over the 16 MB that the database allows.',
  16554: ARITHMETIC,
  16555: ARITHMETIC,
  16556: ARITHMETIC,
  16608: DIVISION,
  16609: DIVISION,
  16610: DIVISION,
  16611: DIVISION,
  16702: '$concat takes texts only; a value is none.',
  16819: MEMORY,
  16820: MEMORY,
  16823: MEMORY,
  16945: MEMORY,
  16947: MEMORY,
  17053: ARGUMENT,
  17124: '$size takes an array; a value is none.',
  17276: 'A variable is not bound where it is used.',
  17419: 'A document grew over the 16 MB that the database allows.',
  28651: NUMBER,
  28664: '$slice takes an array; a value is none.',
  28689: '$arrayElemAt takes an array; a value is none.',
  28690: ARGUMENT,
  28714: '$sqrt takes no negative number.',
  28724: ARITHMETIC,
  28729: LONG_ARRAY,
  28756: '$log takes positive numbers only.',
  28758: '$log takes a base that is positive and not 1.',
  28761: '$log10 takes positive numbers only.',
  28764: '$pow of zero takes no negative exponent.',
  28765: ARITHMETIC,
  28766: '$ln takes positive numbers only.',
  28769: '$divide by zero.',
  31034: 'A key has the wrong type.',
  31095: PATTERN,
  31249: 'Two paths of one $project exclude each other.',
  31250: 'Two paths of one $project exclude each other.',
  34443: ARGUMENT,
  34449: LONG_RANGE,
  34453: ARGUMENT,
  34471: '$in takes an array; a value is none.',
  40066: '$switch found no branch that fits, and has no default.',
  40081: '$in takes an array; a value is none.',
  40228: 'The new root must be a document; a value is none.',
  40085: '$split takes texts only; a value is none.',
  40386: '$arrayToObject takes pairs; a value is none.',
  40390: '$objectToArray takes a document; a value is none.',
  40394: '$arrayToObject takes pairs of a text and a value.',
  40400: '$mergeObjects takes documents only; a value is none.',
  40515: ARITHMETIC,
  40517: 'A part of a date is not one.',
  50750: '$type or a similar operator was given what it does not take.',
  50752: '$trim takes a text; a value is none.',
  50989: ARITHMETIC,
  51044: '$round takes a number; a value is none.',
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

const TIMEOUTS = new Set([50, 202, 262])
const GONE = new Set([6, 7, 63, 89, 91, 133, 189, 9001, 10058, 10107, 11600, 11602, 13435, 13436])
const BUSY = new Set([202, 317, 462])

/** What run() throws for what went wrong: an AppError as it is, anything else by its code, with it as the cause. */
export function failure(error: unknown): AppError {
  if (error instanceof AppError) return error
  if (!(error instanceof Error)) return internal(error)
  const code: unknown = Reflect.get(error, 'code')
  if (error.name === 'MongoServerError' || (typeof code === 'number' && /^Mongo/.test(error.name))) {
    return fromServer(error, typeof code === 'number' ? code : 0)
  }
  if (/^Mongo/.test(error.name)) return new AppError('DATASOURCE_UNAVAILABLE', LOST, { cause: error })
  if (/^BSON/.test(error.name))
    return new AppError('QUERY_FAILED', 'The query cannot be written as BSON.', { cause: error })
  return internal(error)
}

/** Whether the client is of no more use after this. */
export function isLost(error: unknown): boolean {
  return error instanceof AppError && error.code === 'DATASOURCE_UNAVAILABLE'
}

/** The server said that it ended the query for its time. */
function timedOut(cause: unknown): AppError {
  return new AppError('QUERY_TIMEOUT', 'The query took too long and was cancelled in the database.', { cause })
}

/** The collection is gone since introspection. */
export function schemaStale(cause?: unknown): AppError {
  const message =
    'The database has changed since it was introspected: a collection of this query is gone. An administrator must introspect it again.'
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
    return new AppError('QUERY_FAILED', 'The database has too much to do just now; try again.', { cause: error })
  }
  if (code === 11601) {
    return new AppError('QUERY_FAILED', 'The query was ended in the database.', { cause: error })
  }
  const sentence = SENTENCES[code] ?? `The database failed the query (MongoDB’s error ${code}).`
  return new AppError('QUERY_FAILED', sentence, { cause: error })
}

function internal(cause: unknown): AppError {
  return new AppError('INTERNAL', 'Something went wrong here.', { cause })
}
