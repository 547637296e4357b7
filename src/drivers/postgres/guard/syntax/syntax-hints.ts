// Hints for syntax errors, mostly for syntax of other SQL dialects. They depend on the text before and after the error.
// The first hint that fits is used.
import { DESCRIPTION } from '../allowed/hints.ts'

const BEFORE = 240
const AFTER = 80

interface Around {
  readonly why: string
  readonly before: string
  /** The text from the error on. */
  readonly at: string
}

type Rule = readonly [fits: (around: Around) => boolean, hint: string]

const inText = (pattern: RegExp, hint: string): Rule => [({ before, at }) => pattern.test(before + at), hint]
const said = (pattern: RegExp, hint: string): Rule => [({ why }) => pattern.test(why), hint]
const from = (pattern: RegExp, hint: string): Rule => [({ at }) => pattern.test(at), hint]
const behind = (pattern: RegExp, hint: string): Rule => [({ before }) => pattern.test(before), hint]

const QUOTE_HINT = 'If this is a name, quote it: without quotes, "order" is an SQL keyword.'

const RULES: readonly Rule[] = [
  inText(/^\s*(?:describe|desc|help|use|show|\\[a-z]+\+?)(?:\s|;|$)/i, `Send a SELECT. ${DESCRIPTION}`),
  said(/text is empty/, 'Send one SELECT.'),
  said(/contains a NUL/, 'Remove the NUL character.'),
  said(/operator too long/, 'Put spaces between operators.'),
  said(/unterminated quoted string/, "Close the string with a single quote. Double a quote inside: 'O''Hara'."),
  said(/unterminated quoted identifier/, 'Close the name with a double quote. Double a quote inside.'),
  said(/zero-length delimited identifier/, "Write a name between the double quotes; an empty string is ''."),
  said(/unterminated dollar-quoted string/, 'Close the string with the same $tag$ that opens it.'),
  said(/unterminated \/\* comment/, 'Close the comment with */.'),
  said(/#,# syntax/, 'Write LIMIT 10 OFFSET 5: first how many rows, then how many to skip.'),
  inText(/`/, 'Quote names with double quotes, for example "order", and strings with single quotes.'),
  inText(/[“”‘’]/, 'Write straight quotes: \'text\' and "name".'),
  inText(/\bselect\s+(?:distinct\s+)?top\s*\(?\s*\d/i, 'Write LIMIT n at the end instead of TOP n.'),
  inText(/\*\s*(?:except|exclude|replace|rename)\s*\(/i, 'List the columns that you need; * takes no exceptions.'),
  inText(/\bqualify\b/i, 'Put the window function in a sub-select, and the condition in the WHERE of the outer query.'),
  inText(/\bminus\s+select\b/i, 'Write EXCEPT instead of MINUS.'),
  inText(/\b(?:safe_cast|try_cast|try_convert)\s*\(/i, 'Write CAST(x AS type).'),
  inText(/\bconvert\s*\(/i, 'Write CAST(x AS type).'),
  inText(/\bas\s+(?:signed|unsigned)\b/i, 'Write CAST(x AS bigint).'),
  inText(/\bisnull\s*\(/i, 'Write coalesce(a, b), or x IS NULL.'),
  inText(/\b(?:group_concat|listagg)\s*\(/i, "Write string_agg(CAST(x AS text), ',' ORDER BY x)."),
  inText(/\binterval\s+[-+]?\d+/i, "Write INTERVAL '1 day', with the quotes."),
  inText(
    /\bcurrent_(?:date|time|timestamp)\s*\(\s*\)/i,
    'Write CURRENT_DATE and CURRENT_TIMESTAMP without parentheses.',
  ),
  inText(/\bcurrent_(?:user|role|schema|catalog)\b/i, 'Leave it out: a query cannot read anything about the login.'),
  inText(/\b(?:cross|outer)\s+apply\b/i, 'Write CROSS JOIN LATERAL (…) or LEFT JOIN LATERAL (…) ON true.'),
  inText(/\blateral\s+(?:view|flatten)\b|\bwith\s+offset\b/i, 'Write unnest(x) WITH ORDINALITY in FROM.'),
  inText(/\b(?:un)?pivot\b/i, "Write max(value) FILTER (WHERE name = 'a') AS a for each column."),
  inText(/\b(?:semi|anti)\s+join\b/i, 'Write WHERE EXISTS (SELECT …) or NOT EXISTS (SELECT …).'),
  inText(/\s(?:regexp|rlike)\s/i, "Write x ~ 'pattern', or ~* to ignore case."),
  inText(/\b(?:struct|array|map)\s*</i, 'Write ARRAY[…] or ROW(…), and types without angle brackets: int[].'),
  inText(/\b(?:for\s+)?system_time\b|\bas\s+of\b|\btimestamp\s+as\b/i, 'Leave it out: only current data can be read.'),
  inText(/\bwith\s*\(\s*nolock\s*\)/i, 'Leave WITH (NOLOCK) out.'),
  inText(/\bif\s*\(/i, 'Write CASE WHEN condition THEN a ELSE b END.'),
  from(/^\[/, 'Quote names with double quotes: "order".'),
  from(
    /^[:@?%{]|^\$\{/,
    'Write $1 and send the value in `params`, or write the value itself: a number, or a string in single quotes.',
  ),
  from(/^#|^\/\//, 'Write comments as -- … or /* … */.'),
  behind(/,\s*$/, 'Remove the comma before this position, or add the missing part after it.'),
  behind(/\s(?:div|mod|xor)\s*\S{0,40}\s*$/i, 'Write a / b for DIV, a % b for MOD, and a <> b for XOR.'),
  [({ before, at }) => /\b(?:from|join|as|table)\s+$/i.test(before) && /^[a-z]/i.test(at), QUOTE_HINT],
  behind(
    /\b(?:select|where|and|or|on|by|from|join|having|then|else|when)\s*$/i,
    'Add the missing part before this position.',
  ),
]

const RESERVED_HINT = `${QUOTE_HINT} Otherwise something before it is missing or misplaced.`
const GENERAL_HINT = 'Correct the query at this position. Send one SELECT in the syntax of PostgreSQL.'
const ENDED_HINT = 'The query is incomplete: add the missing part, for example a closing parenthesis.'

/** `position` counts UTF-16 units. */
export function syntaxHint(text: string, position: number, why: string): string {
  const around = {
    why,
    // The ellipsis prevents a rule from taking this for the beginning of the text.
    before: position > BEFORE ? `…${text.slice(position - BEFORE, position)}` : text.slice(0, position),
    at: text.slice(position, position + AFTER),
  }
  const rule = RULES.find(([fits]) => fits(around))
  if (rule !== undefined) return rule[1]
  if (/at end of input/.test(why)) return ENDED_HINT
  return /^[a-z_]+\b/i.test(around.at) ? RESERVED_HINT : GENERAL_HINT
}
