// `vitrine account` makes changes that only the operator may make. The service may be running.
import { openAudit, type Audit } from '../audit/audit.ts'
import { changesOf } from '../audit/recorded-changes.ts'
import { readConfig, type Environment } from '../config.ts'
import { openMail, type Mail } from '../mail/send-mail.ts'
import { openSecrets, requireKnownKeyOf } from '../secrets.ts'
import { openStore, type Store } from '../store/open.ts'
import { accountBy } from './account-by-address.ts'
import { attempts } from '../auth/attempt-counter.ts'
import { openNotices } from '../auth/security-mail.ts'
import { endSecondFactor } from './reset-password.ts'
import { factorOf } from './consume-second-factor-code.ts'

interface Out {
  line(text: string): void
  aside(text: string): void
}

const USAGE = `Usage: vitrine account reset-second-factor <e-mail>

Removes the second factor of an account whose owner lost the device and the backup codes, and ends all sessions of the
account. The password and the API keys stay. The change is in the audit. If SMTP_URL is set, the owner gets a mail. Verify
first that the request comes from the owner: afterwards the password alone signs in.

Exit code: 0 done; 1 nothing was done, for the reason given; 2 wrong usage.

Uses the settings of the service (VITRINE_DATA_DIR, or DATABASE_URL and VITRINE_SECRET_KEY). See docs/operating.md. With
DATABASE_URL, the service may be running. Only one process at a time can open the embedded store: stop the service first.
`

const [DONE, NOTHING_DONE, WRONG_USAGE] = [0, 1, 2]

export async function runAccount(args: readonly string[], env: Environment, out: Out): Promise<number> {
  const [what, email, ...rest] = args
  const isHelp = (arg: string | undefined) => arg === '--help' || arg === '-h'
  if (isHelp(what) || (what === 'reset-second-factor' && isHelp(email))) {
    out.line(USAGE.trimEnd())
    return DONE
  }
  if (what !== 'reset-second-factor' || email === undefined || rest.length > 0) {
    out.aside(USAGE)
    return WRONG_USAGE
  }
  try {
    out.line(await inStore(env, out, email.toLowerCase()))
    return DONE
  } catch (error) {
    out.aside(`${error instanceof Error ? error.message : String(error)}\n`)
    return NOTHING_DONE
  }
}

async function inStore(env: Environment, out: Out, email: string): Promise<string> {
  const config = readConfig(env)
  await using store = await openStore(config, { asIs: true })
  await requireKnownKeyOf(store, config)
  const secrets = await openSecrets(config, { asIs: true, db: store.db })
  await using audit = openAudit({ store, key: secrets.derive('audit chain') })
  const print = (_detail: object, message: string) => out.aside(`${message}\n`)
  await using mail = openMail({ config, log: { warn: print, error: print } })
  const origin = () => config.publicUrl ?? `http://${config.host}:${config.port}`
  return await resetSecondFactor({ store, audit, mail, origin }, email)
}

interface Deps {
  readonly store: Store
  readonly audit: Pick<Audit, 'change'>
  readonly mail: Mail
  readonly origin: () => string
}

/** Returns a sentence for the operator. Throws an Error with one sentence if there is nothing to do. */
async function resetSecondFactor({ store, audit, mail, origin }: Deps, email: string): Promise<string> {
  const accountId = await accountBy(store, email)
  if (accountId === null) throw new Error(`No account has the e-mail address ${email}.`)
  if ((await factorOf(store, accountId)) === null) throw new Error(`The account ${email} has no second factor.`)
  const sessions = await store.write(async (tx) => {
    const { name } = await tx
      .selectFrom('accounts')
      .select('name')
      .where('id', '=', accountId)
      .executeTakeFirstOrThrow()
    await endSecondFactor(store, tx, accountId)
    // Links, and sign-ins that wait for a code.
    await tx.deleteFrom('verifications').where('value', '=', accountId).execute()
    const ended = await tx.deleteFrom('sessions').where('userId', '=', accountId).executeTakeFirst()
    const caller = { kind: 'session', accountId } as const
    const call = { action: 'resetSecondFactor', caller, client: 'vitrine account reset-second-factor' }
    const changes = changesOf({ secondFactor: true }, { secondFactor: false })
    await audit.change(tx, call, {}, { target: { kind: 'account', id: accountId, name }, changes })
    return Number(ended.numDeletedRows)
  })
  await openNotices({ store, mail, tries: attempts(store), origin }).tell(
    accountId,
    { kind: 'second factor reset' },
    {},
  )
  return `Removed the second factor of ${email} and ended ${sessions} ${sessions === 1 ? 'session' : 'sessions'}.`
}
