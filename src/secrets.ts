// Secrets at rest: one root key, from which all other keys are derived (HKDF-SHA-256), and an envelope (AES-256-GCM)
// for datasource secrets, bound to their place. Nothing here is logged or shown.
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { chmod, link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Kysely } from 'kysely'
import type { Config } from './config.ts'
import type { DatasourceId, TeamId } from './ids.ts'
import type { Store } from './store/open.ts'
import type { Tables } from './store/tables.ts'

/** The place of a sealed value. The value cannot be opened for another place. */
export interface SecretPlace {
  readonly teamId: TeamId
  readonly datasourceId: DatasourceId
  readonly field: string
}

export interface Secrets {
  /** Returns an envelope, `v1.<key id>.<nonce, text and tag in base64url>`. */
  seal(place: SecretPlace, text: string): string
  /**
   * Throws an Error without secrets if the envelope is damaged, belongs to another place, or was made with another root
   * key.
   */
  open(place: SecretPlace, sealed: string): string
  /** Returns 32 bytes for one purpose, the same for the same label and root key. */
  derive(label: string): Uint8Array
}

const VERSION = 'v1'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/**
 * Returns the root key from the configuration, or creates it once in the data folder (0600). `asIs`: creates nothing,
 * and throws an Error of one sentence if there is no key.
 */
export async function openSecrets(
  config: Pick<Config, 'secretKey' | 'dataDir'>,
  options: { readonly asIs?: boolean } = {},
): Promise<Secrets> {
  if (config.secretKey !== null) return secretsFrom(config.secretKey)
  return secretsFrom(options.asIs === true ? await existingKey(config.dataDir) : await storedKey(config.dataDir))
}

/**
 * Checks the root key that the store was first opened with. Throws an Error of one sentence for another key, because no
 * sealed value would open. The start is a better time for this error than the first query.
 */
export async function requireKeyOf(store: Pick<Store, 'write'>, secrets: Secrets): Promise<void> {
  const id = idOf(secrets)
  const stored = await store.write(async (tx) => {
    const mark = await markOf(tx)
    if (mark === undefined) await tx.insertInto('marks').values({ name: 'root key', value: id }).execute()
    return mark ?? id
  })
  if (stored !== id) throw anotherKey()
}

/**
 * Checks an existing store's root key before anything is written to the store or the data folder. Throws an Error of
 * one sentence if the key is missing or differs: a new key could not open the secrets.
 */
export async function requireKeyBefore(
  db: Kysely<Tables>,
  config: Pick<Config, 'secretKey' | 'dataDir'>,
): Promise<void> {
  const tables = await db.introspection.getTables()
  const id = tables.some((table) => table.name === 'marks') ? await markOf(db) : undefined
  if (id === undefined) return
  const path = join(config.dataDir, 'secret.key')
  const text = config.secretKey === null ? await readKeyFile(path) : null
  const root = config.secretKey ?? (text === null ? null : bytesOf(text, path))
  if (root === null) {
    throw new Error(
      `There is a store in ${config.dataDir}, but not its key: ${path} is missing, and VITRINE_SECRET_KEY is not set. ` +
        'Restore the key from your backup: without the key, the secrets in the store cannot be read. To start with an empty store, set VITRINE_DATA_DIR to another folder.',
    )
  }
  if (idOf(secretsFrom(root)) !== id) throw anotherKey()
}

/** The same check without changing the store. Also throws if the store was never opened with a key. */
export async function requireKnownKeyOf(store: Pick<Store, 'db'>, secrets: Secrets): Promise<void> {
  if ((await markOf(store.db)) !== idOf(secrets)) throw anotherKey()
}

/** Returns the id of the root key that the store was first opened with. */
async function markOf(db: Kysely<Tables>): Promise<string | undefined> {
  const mark = await db.selectFrom('marks').select('value').where('name', '=', 'root key').executeTakeFirst()
  return mark?.value
}

function idOf(secrets: Secrets): string {
  return Buffer.from(secrets.derive('id of the root key')).toString('hex')
}

function anotherKey(): Error {
  return new Error(
    'This store was written with another VITRINE_SECRET_KEY (or another secret.key in its data folder): without that key its secrets cannot be read. Set that key, or start with another store.',
  )
}

/** Pure: everything is derived from the 32 bytes of the root key. */
export function secretsFrom(root: Uint8Array): Secrets {
  const derive = (label: string) => new Uint8Array(hkdfSync('sha256', root, 'vitrine', label, 32))
  const key = derive('datasource secrets')
  // Distinguishes an envelope of another root key from a damaged one. Derived, so it reveals nothing about the key.
  const keyId = Buffer.from(derive('id of the key of datasource secrets')).toString('hex').slice(0, 8)

  return {
    derive,
    seal(place, text) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(binding(place, keyId))
      const body = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return `${VERSION}.${keyId}.${body.toString('base64url')}`
    },
    open(place, sealed) {
      const [version, id, encoded = ''] = sealed.split('.')
      const body = Buffer.from(encoded, 'base64url')
      if (version !== VERSION || body.length < NONCE_BYTES + TAG_BYTES) throw new Error('a sealed value cannot be read')
      if (id !== keyId) throw new Error('a sealed value was made with another VITRINE_SECRET_KEY')
      const end = body.length - TAG_BYTES
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, NONCE_BYTES))
        decipher.setAAD(binding(place, keyId)).setAuthTag(body.subarray(end))
        return decipher.update(body.subarray(NONCE_BYTES, end), undefined, 'utf8') + decipher.final('utf8')
      } catch {
        // The library's error is dropped: it may contain data that must not be shown.
        throw new Error('a sealed value cannot be opened: it was changed or moved')
      }
    },
  }
}

/** The place as bytes. JSON keeps ('a', 'bc') apart from ('ab', 'c'). */
function binding(place: SecretPlace, keyId: string): Buffer {
  return Buffer.from(JSON.stringify([VERSION, keyId, place.teamId, place.datasourceId, place.field]), 'utf8')
}

async function storedKey(dataDir: string): Promise<Uint8Array> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  const path = join(dataDir, 'secret.key')
  return bytesOf((await readKeyFile(path)) ?? (await createKeyFile(path)), path)
}

async function existingKey(dataDir: string): Promise<Uint8Array> {
  const path = join(dataDir, 'secret.key')
  const text = await readKeyFile(path)
  if (text === null) throw new Error(`There is no ${path}, and VITRINE_SECRET_KEY is not set.`)
  return bytesOf(text, path)
}

function bytesOf(text: string, path: string): Uint8Array {
  const bytes = Buffer.from(text.trim(), 'base64')
  if (bytes.length !== 32) throw new Error(`${path} does not hold a key of 32 bytes in base64`)
  return new Uint8Array(bytes)
}

async function readKeyFile(path: string): Promise<string | null> {
  try {
    const text = await readFile(path, 'utf8')
    await chmod(path, 0o600)
    return text
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
}

/** Writes and flushes a draft before linking it to its name, so that a crash cannot leave half a key. */
async function createKeyFile(path: string): Promise<string> {
  const draft = `${path}.${randomUUID()}`
  {
    await using file = await open(draft, 'w', 0o600)
    await file.writeFile(`${randomBytes(32).toString('base64')}\n`)
    await file.sync()
  }
  try {
    await link(draft, path)
  } catch (error) {
    // Another process created the key first: use that key.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await rm(draft, { force: true })
  }
  return await readFile(path, 'utf8')
}
