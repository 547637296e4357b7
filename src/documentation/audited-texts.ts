// The audit records which texts and personal marks of a documentation were added, removed or changed, by place
// (`columns.name`). It does not record the texts, because a text may contain values that must disappear when the text
// is withdrawn.
import { listedOf, pathName, type Changes } from '../audit/recorded-changes.ts'
import type { Draft, Said } from './stored-draft.ts'
import type { PublishedTable } from './visible-texts.ts'

/** By place (`summary`, `statements.0`, `columns.name`), a string that changes when the text or mark changes. */
type Texts = ReadonlyMap<string, string>

export function draftChanges(before: Draft, after: Draft): Changes {
  const marks = ({ columns }: Draft): Texts =>
    new Map([...columns].flatMap(([name, { personal }]) => (personal === null ? [] : [[name, String(personal)]])))
  return {
    ...compared('texts', draftTexts(before), draftTexts(after)),
    ...compared('personal', marks(before), marks(after)),
  }
}

export function publishedChanges(before: readonly PublishedTable[], after: readonly PublishedTable[]): Changes {
  return compared('texts', publishedTexts(before), publishedTexts(after))
}

export function publishedCounts(before: readonly PublishedTable[], after: readonly PublishedTable[]) {
  const [was, is] = [publishedTexts(before), publishedTexts(after)]
  const kept = [...is].filter(([place]) => was.has(place))
  const changed = kept.filter(([place, text]) => was.get(place) !== text).length
  return { texts: is.size, added: is.size - kept.length, changed, removed: was.size - kept.length }
}

function compared(name: string, before: Texts, after: Texts): Changes {
  const changed = [...after].filter(([place, text]) => before.has(place) && before.get(place) !== text)
  const listed = listedOf(
    [...before.keys()],
    [...after.keys()],
    changed.map(([place]) => place),
  )
  return listed.added.length + listed.removed.length + changed.length === 0 ? {} : { [name]: listed }
}

function draftTexts({ summary, examples, statements, columns }: Draft): Texts {
  const ofColumns = [...columns].map(([name, { said }]) => [`columns.${name}`, said] as const)
  const all = [...placed(summary, examples, statements), ...ofColumns]
  const fingerprint = ({ text, status, origin, restsOn }: Said) => JSON.stringify([text, status, origin, restsOn])
  return new Map(all.flatMap(([place, said]) => (said === null ? [] : [[place, fingerprint(said)]])))
}

function publishedTexts(tables: readonly PublishedTable[]): Texts {
  return new Map(
    tables.flatMap(({ schema, table, summary, examples, statements, columns }) => {
      const ofColumns = [...columns].map(([name, said]) => [`columns.${name}`, said] as const)
      const all = [...placed(summary, examples, statements), ...ofColumns]
      return all.flatMap(([place, said]) =>
        said === null ? [] : [[`${pathName(schema, table)} ${place}`, said.text] as const],
      )
    }),
  )
}

function placed<T>(summary: T | null, examples: T | null, statements: readonly T[]): (readonly [string, T | null])[] {
  return [
    ['summary', summary],
    ['examples', examples],
    ...statements.map((said, n) => [`statements.${n}`, said] as const),
  ]
}
