// Derives all keys from one root key (HKDF-SHA-256), and encrypts the secrets of datasources and webhooks
// (AES-256-GCM). Never logs a secret.
import { execFile } from 'node:child_process'
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes, randomUUID } from 'node:crypto'
import { chmod, link, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Kysely } from 'kysely'
import { KEY_TEXT, type Config } from './config.ts'
import type { DatasourceId, TeamId, WebhookId } from './ids.ts'
import { makeDataFolder } from './store/data-folder.ts'
import type { Store } from './store/open.ts'
import type { Tables } from './store/tables.ts'

/** A sealed secret can be opened only for its own place, so copying it to another team or datasource is useless. */
export interface SecretPlace {
  readonly teamId: TeamId
  readonly datasourceId: DatasourceId | WebhookId
  readonly field: string
}

export interface Secrets {
  /** Encrypts a secret. Returns `v1.<key id>.<nonce, text and tag in base64url>`. */
  seal(place: SecretPlace, text: string): string
  /** Throws an Error without secrets for a damaged text, another place, or another root key. */
  open(place: SecretPlace, sealed: string): string
  /** False if the secret was sealed with the previous root key. */
  isCurrent(sealed: string): boolean
  /** Returns 32 bytes for one purpose. They stay the same when the root key is rotated. */
  derive(label: string): Uint8Array
}

const VERSION = 'v1'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const ROOT_MARK = 'root key'
/** The first root key of the store, sealed with the current one. Only a store whose root key was rotated has it. */
const FIRST_ROOT_MARK = 'first root key'

type KeyConfig = Pick<Config, 'dataDir' | 'secretKey'> & Partial<Pick<Config, 'secretKeyCommand' | 'secretKeyPrevious'>>

/** New secrets are sealed with `current`. During a rotation, `previous` opens the old secrets. */
export interface RootKeys {
  readonly current: RootKey
  readonly previous: RootKey | null
}

interface RootKey {
  readonly bytes: Uint8Array
  /** Identifies the key without revealing anything of it. */
  readonly id: string
}

/**
 * Reads the root key from the configuration, or from the data folder, where it is created once (mode 0600). With
 * `asIs`, creates no key, and throws an Error for the operator if there is none. Pass the store as `db` if its root key
 * may have been rotated.
 */
export async function openSecrets(
  config: KeyConfig,
  options: { readonly asIs?: boolean; readonly db?: Kysely<Tables> } = {},
): Promise<Secrets> {
  const keys = await rootKeysOf(config, options.asIs === true)
  return secretsFrom(keys.current.bytes, keys.previous?.bytes, await firstRootOf(options.db, keys))
}

/** With `asIs`, no key is created. */
export async function rootKeysOf(config: KeyConfig, asIs: boolean): Promise<RootKeys> {
  const configured = await configuredKey(config)
  const bytes = configured ?? (asIs ? await existingKey(config.dataDir) : await storedKey(config.dataDir))
  const previous = config.secretKeyPrevious ?? (configured === null ? await previousFile(config.dataDir) : null)
  return { current: rootKey(bytes), previous: previous === null ? null : rootKey(previous) }
}

/**
 * Throws an Error for the operator if the store has another root key. Called at the start, so that a wrong key is
 * noticed before the first query. Stores the id of the key in a new store.
 */
export async function requireKeyOf(store: Pick<Store, 'write'>, keys: RootKeys): Promise<void> {
  const stored = await store.write(async (tx) => {
    const mark = await markOf(tx, ROOT_MARK)
    if (mark === undefined) await tx.insertInto('marks').values({ name: ROOT_MARK, value: keys.current.id }).execute()
    return mark ?? keys.current.id
  })
  if (!isInForce(keys, stored)) throw anotherKey()
}

/**
 * Throws an Error for the operator if the store exists but the root key is missing or is another one. Called before
 * this process writes anything.
 */
export async function requireKeyBefore(db: Kysely<Tables>, config: KeyConfig): Promise<void> {
  const tables = await db.introspection.getTables()
  const id = tables.some((table) => table.name === 'marks') ? await markOf(db, ROOT_MARK) : undefined
  if (id === undefined) return
  const path = keyPath(config.dataDir)
  if ((await configuredKey(config)) === null && (await readKeyFile(path)) === null) {
    throw new Error(
      `There is a store in ${config.dataDir}, but not its key: ${path} is missing, and VITRINE_SECRET_KEY is not set. ` +
        'Restore the key from your backup: without the key, the secrets in the store cannot be read. To start with an empty store, set VITRINE_DATA_DIR to another folder.',
    )
  }
  if (!isInForce(await rootKeysOf(config, true), id)) throw anotherKey()
}

/** Like requireKeyOf(), but never writes. Also throws if the store has no id of a root key. */
export async function requireKnownKeyOf(store: Pick<Store, 'db'>, config: KeyConfig): Promise<void> {
  const id = await markOf(store.db, ROOT_MARK)
  if (id === undefined || !isInForce(await rootKeysOf(config, true), id)) throw anotherKey()
}

/**
 * After this, the previous key only opens secrets that are not sealed again yet. Returns false if it was done before.
 */
export async function adoptRootKey(store: Pick<Store, 'write'>, keys: RootKeys): Promise<boolean> {
  return await store.write(async (tx) => {
    const mark = await markOf(tx, ROOT_MARK)
    if (mark === undefined || !isInForce(keys, mark)) throw anotherKey()
    if (mark === keys.current.id) return false
    const first = (await firstRootOf(tx, keys)) ?? keys.previous?.bytes
    if (first === undefined) throw anotherKey()
    const value = sealText(
      keyOf(keys.current.bytes, FIRST_ROOT_MARK),
      FIRST_ROOT_MARK,
      Buffer.from(first).toString('base64'),
    )
    await tx.deleteFrom('marks').where('name', 'in', [ROOT_MARK, FIRST_ROOT_MARK]).execute()
    await tx
      .insertInto('marks')
      .values([
        { name: ROOT_MARK, value: keys.current.id },
        { name: FIRST_ROOT_MARK, value },
      ])
      .execute()
    return true
  })
}

/**
 * Returns the first root key of the store, from which all keys are derived even after a rotation, except the key that
 * seals secrets. Undefined if it is the current one, or without `db`.
 */
async function firstRootOf(db: Kysely<Tables> | undefined, keys: RootKeys): Promise<Uint8Array | undefined> {
  if (db === undefined) return undefined
  const sealed = await markOf(db, FIRST_ROOT_MARK)
  if (sealed === undefined) {
    // Before adoptRootKey(), the store may still belong to the previous key.
    const mark = await markOf(db, ROOT_MARK)
    return mark !== undefined && mark === keys.previous?.id ? keys.previous.bytes : undefined
  }
  for (const key of [keys.current, keys.previous]) {
    const text = key === null ? null : openText(keyOf(key.bytes, FIRST_ROOT_MARK), FIRST_ROOT_MARK, sealed)
    if (text !== null) return new Uint8Array(Buffer.from(text, 'base64'))
  }
  throw anotherKey()
}

async function markOf(db: Kysely<Tables>, name: string): Promise<string | undefined> {
  return (await db.selectFrom('marks').select('value').where('name', '=', name).executeTakeFirst())?.value
}

function isInForce(keys: RootKeys, id: string): boolean {
  return id === keys.current.id || id === keys.previous?.id
}

function rootKey(bytes: Uint8Array): RootKey {
  return { bytes, id: Buffer.from(keyOf(bytes, 'id of the root key')).toString('hex') }
}

function anotherKey(): Error {
  return new Error(
    'This store was written with another VITRINE_SECRET_KEY (or another secret.key in its data folder): without that key its secrets cannot be read. Set that key, or start with another store.',
  )
}

function keyOf(root: Uint8Array, label: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', root, 'vitrine', label, 32))
}

/** The root keys have 32 bytes each. `first` is the store's first root key, if it is not the current one. */
export function secretsFrom(root: Uint8Array, previous?: Uint8Array, first: Uint8Array = root): Secrets {
  const current = sealerOf(root)
  const sealers = previous === undefined ? [current] : [current, sealerOf(previous)]
  return {
    derive: (label) => keyOf(first, label),
    isCurrent: (sealed) => sealed.split('.')[1] === current.id,
    seal(place, text) {
      const body = sealText(current.key, binding(place, current.id), text)
      return `${VERSION}.${current.id}.${body}`
    },
    open(place, sealed) {
      const [version, id, body = ''] = sealed.split('.')
      if (version !== VERSION || Buffer.from(body, 'base64url').length < NONCE_BYTES + TAG_BYTES)
        throw new Error('a sealed value cannot be read')
      const sealer = sealers.find((known) => known.id === id)
      if (sealer === undefined) throw new Error('a sealed value was made with another VITRINE_SECRET_KEY')
      const text = openText(sealer.key, binding(place, sealer.id), body)
      if (text === null) throw new Error('a sealed value cannot be opened: it was changed or moved')
      return text
    },
  }
}

function sealerOf(root: Uint8Array): { readonly key: Uint8Array; readonly id: string } {
  // Distinguishes a secret that was sealed with another root key from a damaged one, and does not reveal the key.
  const id = Buffer.from(keyOf(root, 'id of the key of datasource secrets')).toString('hex').slice(0, 8)
  return { key: keyOf(root, 'datasource secrets'), id }
}

function sealText(key: Uint8Array, bound: string, text: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(bound, 'utf8'))
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString('base64url')
}

/** Returns null for a changed text or a wrong key or place. Drops the library's error, which may contain data. */
function openText(key: Uint8Array, bound: string, sealed: string): string | null {
  const body = Buffer.from(sealed, 'base64url')
  const end = body.length - TAG_BYTES
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, body.subarray(0, NONCE_BYTES))
    decipher.setAAD(Buffer.from(bound, 'utf8')).setAuthTag(body.subarray(end))
    return decipher.update(body.subarray(NONCE_BYTES, end), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return null
  }
}

/** JSON, because ('a', 'bc') and ('ab', 'c') must differ. */
function binding(place: SecretPlace, keyId: string): string {
  return JSON.stringify([VERSION, keyId, place.teamId, place.datasourceId, place.field])
}

const COMMAND_MS = 30_000
const COMMAND_BYTES = 4_096
/** Cached, so that a process asks its key management service only once. */
const commands = new Map<string, Promise<Uint8Array>>()

async function configuredKey(config: KeyConfig): Promise<Uint8Array | null> {
  const command = config.secretKeyCommand ?? null
  if (config.secretKey !== null || command === null) return config.secretKey
  let asked = commands.get(command)
  if (asked === undefined) commands.set(command, (asked = askCommand(command)))
  return await asked
}

/** The command and its output may contain secrets, so the Error for the operator contains neither. */
async function askCommand(command: string): Promise<Uint8Array> {
  const ask = promisify(execFile)
  let text: string
  try {
    const { stdout } = await ask('/bin/sh', ['-c', command], { timeout: COMMAND_MS, maxBuffer: COMMAND_BYTES })
    text = stdout.trim()
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? cause.code : null
    const why =
      typeof code === 'number' ? `ended with the code ${code}` : 'did not end in time, or could not be started'
    throw new Error(`VITRINE_SECRET_KEY_COMMAND ${why}. Run the command by hand to see its error.`)
  }
  if (!KEY_TEXT.test(text)) {
    throw new Error('VITRINE_SECRET_KEY_COMMAND must print 32 bytes in base64, and nothing else, on standard output.')
  }
  return new Uint8Array(Buffer.from(text, 'base64'))
}

export function keyPath(dataDir: string): string {
  return join(dataDir, 'secret.key')
}

/** Exists only during a rotation. */
export function previousKeyPath(dataDir: string): string {
  return join(dataDir, 'secret.key.previous')
}

async function previousFile(dataDir: string): Promise<Uint8Array | null> {
  const path = previousKeyPath(dataDir)
  const text = await readKeyFile(path)
  return text === null ? null : bytesOf(text, path)
}

async function storedKey(dataDir: string): Promise<Uint8Array> {
  makeDataFolder(dataDir)
  const path = keyPath(dataDir)
  return bytesOf((await readKeyFile(path)) ?? (await createKeyFile(path)), path)
}

async function existingKey(dataDir: string): Promise<Uint8Array> {
  const path = keyPath(dataDir)
  const text = await readKeyFile(path)
  if (text === null) throw new Error(`There is no ${path}, and VITRINE_SECRET_KEY is not set.`)
  return bytesOf(text, path)
}

function bytesOf(text: string, path: string): Uint8Array {
  const bytes = Buffer.from(text.trim(), 'base64')
  if (bytes.length !== 32) throw new Error(`${path} does not contain a key of 32 bytes in base64`)
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

/** Returns the text of the file. Another process may create it first. A crash cannot leave half a key. */
export async function createKeyFile(path: string): Promise<string> {
  const draft = `${path}.${randomUUID()}`
  {
    await using file = await open(draft, 'w', 0o600)
    await file.writeFile(`${randomBytes(32).toString('base64')}\n`)
    await file.sync()
  }
  try {
    await link(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await rm(draft, { force: true })
  }
  return await readFile(path, 'utf8')
}
