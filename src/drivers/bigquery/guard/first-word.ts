// The first word of the SQL must begin a query. If it begins one of the statements in WRITES, the refusal names the
// statement.
import { near } from './did-you-mean.ts'
import { Malformed, refusedStatement, shown } from './refusal.ts'
import type { Token } from './tokens.ts'

const WRITES = new Set(
  `ABORT ALTER ANALYZE ASSERT BEGIN BREAK CALL CASE CLONE COMMIT CONTINUE CREATE DECLARE DEFINE DELETE DESCRIBE DROP END EXECUTE
  EXPLAIN EXPORT FOR GRANT GRAPH IF IMPORT INSERT ITERATE LEAVE LOAD LOOP MERGE MODULE RAISE RENAME REPEAT RETURN REVOKE
  ROLLBACK RUN SET SHOW START TABLE TRUNCATE UNDROP UPDATE WHILE`.split(/\s+/),
)
const LISTED = 'GET …/schema lists the tables and columns that can be read.'
const HINTS: Readonly<Record<string, string>> = {
  CREATE: 'Functions and tables cannot be created here, not even temporary ones: write the expression, or use WITH.',
  DECLARE: 'Scripting is not supported: write the value into the query, or use WITH.',
  SET: 'Scripting is not supported: write the value into the query, or use WITH.',
  TABLE: 'Write SELECT * FROM the table.',
  SHOW: LISTED,
  DESCRIBE: LISTED,
  EXPLAIN: 'POST …/check shows what a query would read, without running it.',
}

/** Throws Refusal for a statement in WRITES, and Malformed for other words that begin no query. */
export function checkStart(token: Token): void {
  const { key, at } = token
  if (key === 'SELECT' || key === 'WITH' || key === 'FROM' || key === '(') return
  if (token.kind === 'word' && WRITES.has(key)) throw refusedStatement(key, at, HINTS[key])
  const like = token.kind === 'word' ? near(token.name, ['SELECT', 'WITH', 'FROM'], (word) => word).trimEnd() : ''
  const why = `a query begins with SELECT, WITH, FROM or a parenthesis, not with ${shown(token.text)}`
  throw new Malformed(like === '' ? why : `${why}. ${like}`, at)
}
