// `vitrine secrets rotate` seals every secret with a new root key. An interrupted rotation can be run again.
import { existsSync } from 'node:fs'
import { link, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readConfig, type Config, type Environment } from '../config.ts'
import {
  adoptRootKey,
  createKeyFile,
  keyPath,
  openSecrets,
  previousKeyPath,
  requireKeyBefore,
  rootKeysOf,
  type Secrets,
} from '../secrets.ts'
import type { DatasourceId, TeamId } from '../ids.ts'
import { openStore, type Store } from '../store/open.ts'

interface Out {
  line(text: string): void
}

const PORTION = 100

/** Throws an Error for the operator if there is no second key, or if neither key belongs to the store. */
export async function runSecrets([what, ...more]: readonly string[], env: Environment, out: Out): Promise<void> {
  if (what !== 'rotate' || more.length > 0) throw new Error('Usage: vitrine secrets rotate')
  const config = readConfig(env)
  const usesFile = config.secretKey === null && config.secretKeyCommand === null
  await using store = await openStore(config, { asIs: true, admit: (db) => requireKeyBefore(db, config) })
  if (usesFile) await replaceFile(config)
  const keys = await rootKeysOf(config, true)
  if (keys.previous === null) {
    throw new Error(
      'Set VITRINE_SECRET_KEY to the new key and VITRINE_SECRET_KEY_PREVIOUS to the old key, then run this again.',
    )
  }
  await adoptRootKey(store, keys)
  const secrets = await openSecrets(config, { asIs: true, db: store.db })
  const count = (await sealAgain(store, secrets)) + (await sealWebhooksAgain(store, secrets))
  if (usesFile) await rm(previousKeyPath(config.dataDir), { force: true })
  out.line(`${count} secrets were sealed with the new root key. All secrets are now sealed with it.`)
  out.line(
    usesFile
      ? `Back up ${keyPath(config.dataDir)}. The old key opens no secret of this store.`
      : 'Remove VITRINE_SECRET_KEY_PREVIOUS from every process, and restart them.',
  )
}

/** Adds a new key to the data folder. Keeps the old key beside it until all secrets are sealed again. */
async function replaceFile({ dataDir }: Config): Promise<void> {
  const [path, previous] = [keyPath(dataDir), previousKeyPath(dataDir)]
  if (!existsSync(previous)) await link(path, previous)
  // An interrupted rotation continues with its two keys.
  else if ((await readFile(path, 'utf8')) !== (await readFile(previous, 'utf8'))) return
  const next = `${path}.next`
  await rm(next, { force: true })
  await createKeyFile(next)
  await rename(next, path)
  await using folder = await open(dirname(path), 'r')
  await folder.sync()
}

/** Seals the datasource secrets of the previous key with the current key. Returns their number. */
async function sealAgain(store: Store, secrets: Secrets): Promise<number> {
  let count = 0
  for (let last: DatasourceId | null = null; ;) {
    const all = store.db.selectFrom('datasources').select(['id', 'team_id']).orderBy('id').limit(PORTION)
    const datasources: readonly { readonly id: DatasourceId; readonly team_id: TeamId }[] = await (
      last === null ? all : all.where('id', '>', last)
    ).execute()
    if (datasources.length === 0) return count
    for (const { id, team_id: teamId } of datasources) {
      last = id
      count += await store.write(async (tx) => {
        const rows = await tx.selectFrom('datasource_secrets').selectAll().where('datasource_id', '=', id).execute()
        const old = rows.filter((row) => !secrets.isCurrent(row.sealed))
        for (const row of old) {
          const place = { teamId, datasourceId: id, field: row.field }
          await tx
            .updateTable('datasource_secrets')
            .set({ sealed: secrets.seal(place, secrets.open(place, row.sealed)) })
            .where('datasource_id', '=', id)
            .where('field', '=', row.field)
            .execute()
        }
        return old.length
      })
    }
  }
}

/** Does the same for webhooks. Reads the ids of all webhooks together, because a team has only a few. */
async function sealWebhooksAgain(store: Store, secrets: Secrets): Promise<number> {
  let count = 0
  for (const { id } of await store.db.selectFrom('webhooks').select('id').orderBy('id').execute()) {
    count += await store.write(async (tx) => {
      const row = await tx.selectFrom('webhooks').selectAll().where('id', '=', id).executeTakeFirst()
      if (row === undefined) return 0
      const again = (field: string, sealed: string) => {
        const place = { teamId: row.team_id, datasourceId: id, field }
        return secrets.isCurrent(sealed) ? sealed : secrets.seal(place, secrets.open(place, sealed))
      }
      const set = {
        sealed_url: again('webhook url', row.sealed_url),
        sealed_secret: again('webhook secret', row.sealed_secret),
      }
      await tx.updateTable('webhooks').set(set).where('id', '=', id).execute()
      return Number(set.sealed_url !== row.sealed_url) + Number(set.sealed_secret !== row.sealed_secret)
    })
  }
  return count
}
