// Chooses one of our own hints for a failed dry run, by BigQuery's message.

/** The hint if no other hint fits. */
export const TRY = 'Leave out parts of the query until it works; POST …/check tries a query without running it.'

const HINTS: readonly (readonly [RegExp, string])[] = [
  [
    /No matching signature for (?:operator|function)/i,
    'Convert one side: CAST(x AS STRING), or PARSE_DATE, PARSE_TIMESTAMP for text.',
  ],
  [
    /neither grouped nor aggregated/i,
    'Add the column to GROUP BY, or read one value of a group with ANY_VALUE(column).',
  ],
  [/Aggregate function .* not allowed in/i, 'Filter groups with HAVING, or aggregate in a sub-query.'],
  [/Analytic function .* not allowed in/i, 'Filter with QUALIFY, or compute the window in a sub-query.'],
  [/is ambiguous/i, 'Write the alias of its table before the column: t.column.'],
  [
    /Could not cast literal|Invalid (?:date|time|datetime|timestamp)/i,
    "Write dates as DATE '2024-01-31', or parse text with PARSE_DATE.",
  ],
  [/date part/i, 'The date part comes last, without quotes: DATE_TRUNC(day, MONTH), DATE_DIFF(a, b, DAY).'],
  [/without a filter over column/i, 'Add WHERE with a range of the partitioning column.'],
  [/Duplicate (?:column|alias)/i, 'Give each column another alias.'],
  [
    /Cannot access field|does not have a field|has type ARRAY/i,
    'Read the elements of an array with UNNEST(array), and a field of a STRUCT with a dot.',
  ],
  [/Values referenced in UNNEST must be arrays/i, 'UNNEST takes an array; read a field of a STRUCT with a dot.'],
  [/must have (?:only|exactly) one/i, 'Select one column in the sub-query.'],
]

/**
 * These errors occur if a star has fewer columns than the caller expects, for example in one branch of a set operation.
 */
const UNEQUAL =
  /\bmismatched column count\b|^Column \d+ in (?:UNION|INTERSECT|EXCEPT)\b.*\bincompatible types\b|\bmust have (?:only|exactly) one (?:output )?column\b|\bexpands to zero columns\b/i
const SHRUNK =
  'A star contains the exposed columns only, which may be fewer than the table has: name the columns that you want instead.'

export function failureHint(googleText: string, hasStar: boolean): string {
  if (hasStar && UNEQUAL.test(googleText)) return SHRUNK
  return HINTS.find(([pattern]) => pattern.test(googleText))?.[1] ?? TRY
}
