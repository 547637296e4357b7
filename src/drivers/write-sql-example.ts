// Writes example questions in SQL that PostgreSQL and GoogleSQL both understand. Only the quotes of names differ.
import type { Question, QuestionTable } from './example-question.ts'

/** `quote` must turn any name into an identifier, and must not throw. */
export function questionInSql(question: Question, quote: (name: string) => string): string {
  const table = (at: QuestionTable) => `${quote(at.schema)}.${quote(at.table)}`
  const list = (columns: readonly string[]) => columns.map(quote).join(', ')
  switch (question.kind) {
    case 'countBy': {
      const column = quote(question.column)
      return `SELECT ${column}, COUNT(*) AS row_count FROM ${table(question.of)} GROUP BY ${column} ORDER BY row_count DESC`
    }
    case 'newest':
      return `SELECT ${list(question.columns)} FROM ${table(question.of)} ORDER BY ${quote(question.time)} DESC LIMIT 10`
    case 'countJoined': {
      const label = `b.${quote(question.label)}`
      const on = `a.${quote(question.column)} = b.${quote(question.to.column)}`
      const from = `${table(question.of)} AS a JOIN ${table(question.to)} AS b ON ${on}`
      return `SELECT ${label}, COUNT(*) AS row_count FROM ${from} GROUP BY ${label} ORDER BY row_count DESC LIMIT 10`
    }
    case 'rows':
      return `SELECT ${list(question.columns)} FROM ${table(question.of)} LIMIT 10`
    default:
      return question satisfies never
  }
}
