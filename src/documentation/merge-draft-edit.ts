// Merges a manager's edit of one table into its draft, and reports every problem with its place in the request.
import type { RestingPlace } from './text-dependencies.ts'
import { EMPTY, textsOf, typesOf, type Draft, type Said } from './stored-draft.ts'

/** Omitted fields have defaults. `origin` is ignored. */
interface TextInput {
  readonly text: string
  readonly origin?: Said['origin']
  readonly status?: Said['status']
  readonly restsOn?: readonly string[]
}

interface ColumnInput {
  readonly text?: string
  readonly origin?: Said['origin']
  readonly status?: Said['status']
  readonly restsOn?: readonly string[]
  readonly personal?: boolean | null
}

/**
 * Omitted parts stay unchanged. Null or an empty list removes a part. `columns` replaces the texts of all columns, but
 * the personal marks of only those columns that it contains.
 */
export interface DraftInput {
  readonly summary?: TextInput | null
  readonly examples?: TextInput | null
  readonly statements?: readonly TextInput[]
  readonly columns?: ReadonlyMap<string, ColumnInput>
}

/** Merges the edit into the draft `before`. The database may no longer have the table. */
export function readDraftChange(
  input: DraftInput,
  before: Draft | null,
  place: RestingPlace,
): { readonly draft: Draft; readonly problems: readonly string[] } {
  const was = before ?? EMPTY
  const reader = new Reader(was, place)
  const draft: Draft = {
    summary: input.summary === undefined ? was.summary : reader.text('summary', input.summary),
    examples: input.examples === undefined ? was.examples : reader.text('examples', input.examples),
    statements: input.statements === undefined ? was.statements : reader.statements(input.statements),
    columns: input.columns === undefined ? was.columns : reader.columns(input.columns),
  }
  return { draft, problems: reader.problems }
}

class Reader {
  readonly problems: string[] = []
  readonly #place: RestingPlace
  /** The types that columns had when the texts were written, or ''. The database may no longer have these columns. */
  readonly #before: ReadonlyMap<string, string>
  readonly #generated: ReadonlyMap<string, Said>
  readonly #marked: Draft['columns']

  constructor(was: Draft, place: RestingPlace) {
    this.#place = place
    this.#marked = was.columns
    const texts = textsOf(was)
    this.#before = new Map([
      ...[...was.columns.keys()].map((name) => [name, ''] as const),
      ...texts.flatMap((said) => said.restsOn.map((name) => [name, said.types.get(name) ?? ''] as const)),
    ])
    this.#generated = new Map(texts.filter((said) => said.origin === 'GENERATED').map((said) => [said.text, said]))
  }

  text(place: string, input: TextInput | null): Said | null {
    if (input === null) return null
    // An unchanged generated text keeps its origin and its dependencies. An edited text is the manager's own.
    const generated = this.#generated.get(input.text)
    const restsOn = [...new Set([...(input.restsOn ?? []), ...(generated?.restsOn ?? [])])]
    for (const name of restsOn) {
      if (!this.#knows(name)) this.problems.push(`${place}.restsOn: ${name} is not a known column`)
    }
    // If a column no longer exists, use its type at the time when the text was written.
    const gone = restsOn.flatMap((name) => [[name, this.#before.get(name) ?? ''] as const])
    return {
      text: input.text,
      origin: generated === undefined ? 'HUMAN' : 'GENERATED',
      status: input.status ?? 'ACCEPTED',
      restsOn,
      tells: generated?.tells === true,
      types: new Map([...gone, ...typesOf(restsOn, this.#place)]),
    }
  }

  statements(input: readonly TextInput[]): Said[] {
    return input.map((each, n) => this.text(`statements.${n}`, each)).filter((said) => said !== null)
  }

  columns(input: ReadonlyMap<string, ColumnInput>): Draft['columns'] {
    const read = new Map<string, { said: Said | null; personal: boolean | null }>()
    for (const [name, { text, personal, ...rest }] of input) {
      if (!this.#place.isOwn(name) && !this.#before.has(name)) {
        this.problems.push(`columns: ${name} is not a column of this table`)
        continue
      }
      const restsOn = [name, ...(rest.restsOn ?? [])]
      const said = text === undefined ? null : this.text(`columns.${name}`, { ...rest, text, restsOn })
      if (said !== null || (personal ?? null) !== null) read.set(name, { said, personal: personal ?? null })
    }
    for (const [name, { personal }] of this.#marked) {
      if (personal !== null && !input.has(name)) read.set(name, { said: null, personal })
    }
    return read
  }

  #knows(name: string): boolean {
    return this.#place.typeOf(name) !== undefined || this.#before.has(name)
  }
}
