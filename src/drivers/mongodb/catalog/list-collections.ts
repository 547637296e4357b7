// Lists collections by what the login may do: with their options, or only their names. If it may do neither, the names
// come from the login's privileges.
import type * as mongodb from 'mongodb'
import { failure } from '../session/failure.ts'
import type { CollectionKind } from '../captured-facts.ts'
import { privilegesOf } from './privileges.ts'

export interface FoundCollection {
  readonly name: string
  readonly kind: CollectionKind
  /** Empty if the login may not see the options. */
  readonly options: mongodb.Document
}

const LIST_MS = 60_000

/** Leaves out MongoDB's internal collections. */
export async function findCollections(db: mongodb.Db, signal: AbortSignal): Promise<readonly FoundCollection[]> {
  const found = await firstAllowed([
    () => listed(db, { nameOnly: false }, signal),
    () => listed(db, { nameOnly: true, authorizedCollections: true }, signal),
    () => privileged(db, signal),
  ])
  return found
    .filter(({ name }) => !name.startsWith('system.'))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

async function listed(
  db: mongodb.Db,
  options: { nameOnly: boolean; authorizedCollections?: boolean },
  signal: AbortSignal,
): Promise<readonly FoundCollection[]> {
  const found: FoundCollection[] = []
  for await (const each of db.listCollections({}, { ...options, maxTimeMS: LIST_MS, signal })) {
    const { name, type } = each
    const more: unknown = Reflect.get(each, 'options')
    found.push({ name, kind: kindOf(type), options: typeof more === 'object' && more !== null ? more : {} })
  }
  return found
}

/** A privilege may name a collection that was dropped. This collection then looks empty. */
async function privileged(db: mongodb.Db, signal: AbortSignal): Promise<readonly FoundCollection[]> {
  const names = (await privilegesOf(db, signal)).privileges
    .filter(({ actions, resource }) => resource.db === db.databaseName && actions.includes('find'))
    .map(({ resource }) => resource.collection ?? '')
  return [...new Set(names)].filter((name) => name !== '').map((name) => ({ name, kind: 'collection', options: {} }))
}

function kindOf(type: unknown): CollectionKind {
  return type === 'view' || type === 'timeseries' ? type : 'collection'
}

/** Tries the ways one by one, until the server allows one. */
async function firstAllowed<T>(ways: readonly (() => Promise<T>)[]): Promise<T> {
  let refused: unknown
  for (const way of ways) {
    try {
      return await way()
    } catch (error) {
      if (failure(error).code !== 'QUERY_FAILED') throw error
      refused = error
    }
  }
  throw refused
}
