// Writes example questions as MongoDB query bodies.
import type { Question } from '../example-question.ts'

/** Returns null for a question that joins collections, because MongoDB has no foreign keys. */
export function questionInMongo(question: Question): string | null {
  const pipeline = pipelineOf(question)
  return pipeline === null ? null : JSON.stringify({ collection: question.of.table, pipeline })
}

/** Quotes a name with unusual characters like a JSON string. */
export function typedPath(names: readonly string[]): string {
  return names.map((name) => (PLAIN.test(name) ? name : JSON.stringify(name))).join('.')
}

const PLAIN = /^[\p{L}\p{N}_$-]+(?:\.[\p{L}\p{N}_$-]+)*$/u

function pipelineOf(question: Question): readonly object[] | null {
  switch (question.kind) {
    case 'countBy':
      return [{ $group: { _id: `$${question.column}`, rowCount: { $sum: 1 } } }, { $sort: { rowCount: -1 } }]
    case 'newest':
      return [{ $sort: { [question.time]: -1 } }, { $limit: 10 }, { $project: shown(question.columns) }]
    case 'rows':
      return [{ $limit: 10 }, { $project: shown(question.columns) }]
    case 'countJoined':
      return null
    default:
      return question satisfies never
  }
}

/** Leaves out a path if a parent of it is included. */
function shown(paths: readonly string[]): Readonly<Record<string, 1>> {
  const outer = paths.filter((path) => !paths.some((other) => path.startsWith(`${other}.`)))
  return Object.fromEntries(outer.map((path) => [path, 1]))
}
