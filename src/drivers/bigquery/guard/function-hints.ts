import { PLAIN_FUNCTIONS } from './allowed-functions.ts'
import { near } from './did-you-mean.ts'

/** The key is the function of the other dialect, in capitals. The value is what GoogleSQL has instead. */
const FUNCTIONS: Readonly<Record<string, string>> = {
  ARRAY_JOIN: 'ARRAY_TO_STRING(array, separator)',
  ADD_MONTHS: 'DATE_ADD(day, INTERVAL n MONTH)',
  CHARINDEX: 'STRPOS(text, part)',
  CONVERT: 'CAST(x AS type)',
  COUNT_IF: 'COUNTIF(condition)',
  CURDATE: 'CURRENT_DATE()',
  DATEADD: 'DATE_ADD(day, INTERVAL n DAY), or TIMESTAMP_ADD',
  DATEDIFF: 'DATE_DIFF(later, earlier, DAY), or TIMESTAMP_DIFF',
  DATE_FORMAT: "FORMAT_DATE('%Y-%m', day), or FORMAT_TIMESTAMP",
  DATE_PART: 'EXTRACT(YEAR FROM day)',
  DATEPART: 'EXTRACT(YEAR FROM day)',
  DATETRUNC: 'DATE_TRUNC(day, MONTH)',
  DAY: 'EXTRACT(DAY FROM day)',
  DECODE: 'CASE x WHEN a THEN b ELSE c END',
  EXPLODE: 'UNNEST(array) in FROM',
  FROM_UNIXTIME: 'TIMESTAMP_SECONDS(n)',
  GETDATE: 'CURRENT_TIMESTAMP()',
  GROUP_CONCAT: 'STRING_AGG(text, separator)',
  HOUR: 'EXTRACT(HOUR FROM time)',
  IIF: 'IF(condition, a, b)',
  ISNULL: 'IFNULL(x, y), or x IS NULL',
  JSON_EXTRACT_PATH_TEXT: "JSON_VALUE(json, '$.path')",
  LEN: 'LENGTH(text)',
  LISTAGG: 'STRING_AGG(text, separator)',
  MEDIAN: 'APPROX_QUANTILES(x, 2)[OFFSET(1)], or PERCENTILE_CONT(x, 0.5) OVER ()',
  MONTH: 'EXTRACT(MONTH FROM day)',
  NOW: 'CURRENT_TIMESTAMP()',
  NVL: 'IFNULL(x, y)',
  NVL2: 'IF(x IS NULL, b, a)',
  POSITION: 'STRPOS(text, part)',
  QUARTER: 'EXTRACT(QUARTER FROM day)',
  RANDOM: 'RAND()',
  REGEXP_LIKE: "REGEXP_CONTAINS(text, r'pattern')",
  REGEXP_MATCHES: "REGEXP_CONTAINS(text, r'pattern')",
  REGEXP_COUNT: "ARRAY_LENGTH(REGEXP_EXTRACT_ALL(text, r'pattern'))",
  SPLIT_PART: "SPLIT(text, ',')[SAFE_OFFSET(n)], n from 0",
  STRING_SPLIT: 'SPLIT(text, separator)',
  STRING_TO_ARRAY: 'SPLIT(text, separator)',
  STR_TO_DATE: "PARSE_DATE('%Y-%m-%d', text)",
  SUBSTRING_INDEX: 'SPLIT(text, separator)[SAFE_OFFSET(0)]',
  SYSDATE: 'CURRENT_DATETIME()',
  TO_CHAR: "FORMAT_TIMESTAMP('%Y-%m-%d', time), FORMAT_DATE, or CAST(x AS STRING)",
  TO_DATE: "PARSE_DATE('%Y-%m-%d', text)",
  TO_NUMBER: 'CAST(text AS NUMERIC)',
  TO_TIMESTAMP: "PARSE_TIMESTAMP('%Y-%m-%d %H:%M:%S', text), or TIMESTAMP_SECONDS(n)",
  TRY_CAST: 'SAFE_CAST(x AS type)',
  UNIX_TIMESTAMP: 'UNIX_SECONDS(time)',
  YEAR: 'EXTRACT(YEAR FROM day)',
}

/**
 * Returns a hint for a function that GoogleSQL does not have, or that may not be called. Returns '' if there is no
 * hint.
 */
export function functionHint(name: string): string {
  const key = name.toUpperCase()
  const own = Object.hasOwn(FUNCTIONS, key) ? FUNCTIONS[key] : undefined
  if (own !== undefined) return `Write ${own}. `
  return near(key, PLAIN_FUNCTIONS, (similar) => `${similar}()`)
}

const DATE_PART =
  /^['"](?:year|isoyear|quarter|month|week|isoweek|day|hour|minute|second|millisecond|microsecond)s?['"]$/i
const BY_PART = /^(?:DATE|DATETIME|TIME|TIMESTAMP)_(TRUNC|DIFF|ADD|SUB)$/

/**
 * Other dialects write DATE_TRUNC('month', day). Returns a hint for this order of the arguments, and null for any other
 * call.
 */
export function partFirst(name: string, firstArgument: string): string | null {
  const [call, kind] = BY_PART.exec(name.toUpperCase()) ?? []
  if (call === undefined || !DATE_PART.test(firstArgument)) return null
  const part = firstArgument.slice(1, -1).toUpperCase().replace(/S$/, '')
  if (kind === 'TRUNC') return `Write ${call}(x, ${part}): the part comes last, without quotes.`
  if (kind === 'DIFF') return `Write ${call}(later, earlier, ${part}): the part comes last, without quotes.`
  return `Write ${call}(x, INTERVAL n ${part}).`
}
