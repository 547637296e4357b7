// Checks the fields of an SSH tunnel (`config.ssh`), which all kinds of database with a host and a port have. An error
// names the field, and never repeats its value.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { hostField, nameField, portField, wrongHost } from './connection-fields.ts'

export const SSH_SECRETS = ['sshPrivateKey', 'sshPassphrase', 'sshPassword'] as const

/** The SSH server of a tunnel, and the login there. `secrets` is never logged. */
export interface SshTarget {
  readonly host: string
  readonly port: number
  readonly username: string
  /** As ssh-keygen prints it: `SHA256:` and base64. */
  readonly hostKey: string
  /** Null if only the fingerprint was given, and not the whole key. */
  readonly hostKeyType: string | null
  readonly secrets: {
    readonly privateKey: string | null
    readonly passphrase: string | null
    readonly password: string | null
  }
}

const SshConfig = z.strictObject({
  host: hostField,
  port: portField(22),
  username: nameField(256),
  hostKey: z.string({ error: 'must be a string' }).max(4_096, 'is too long'),
})

const FINGERPRINT = /^SHA256:[A-Za-z0-9+/]{43}$/
const KEY_LINE =
  /^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)) ([A-Za-z0-9+/]{40,4000}={0,2})(?: [^\r\n]*)?\s*$/

/** Adds each problem to `wrong`. Returns null if there are problems. */
export function sshTargetOf(
  config: unknown,
  secrets: Readonly<Record<string, string>>,
  wrong: string[],
): SshTarget | null {
  const before = wrong.length
  const read = SshConfig.safeParse(config)
  const { sshPrivateKey: privateKey = null, sshPassphrase: passphrase = null, sshPassword: password = null } = secrets
  if ((privateKey === null) === (password === null)) wrong.push('sshPrivateKey: send either this or sshPassword')
  if (passphrase !== null && privateKey === null) wrong.push('sshPassphrase: needs an sshPrivateKey')
  if (!read.success) {
    wrong.push(
      ...read.error.issues.map(({ path, message, code }) =>
        config === undefined
          ? 'config.ssh: is required'
          : `${['config', 'ssh', ...path].join('.')}: ${code === 'unrecognized_keys' ? 'has an unknown field' : message}`,
      ),
    )
    return null
  }
  const { host, port, username, hostKey } = read.data
  wrong.push(...wrongHost(host).map((problem) => `config.ssh.${problem}`))
  const pin = pinOf(hostKey)
  if (pin === null)
    wrong.push('config.ssh.hostKey: must be SHA256:… or a line of ssh-keyscan such as ssh-ed25519 AAAA…')
  if (pin === null || wrong.length > before) return null
  return { host, port, username, ...pin, secrets: { privateKey, passphrase, password } }
}

function pinOf(text: string): Pick<SshTarget, 'hostKey' | 'hostKeyType'> | null {
  const plain = text.trim()
  if (FINGERPRINT.test(plain)) return { hostKey: plain, hostKeyType: null }
  const [, type, key] = KEY_LINE.exec(plain) ?? []
  if (type === undefined || key === undefined) return null
  return { hostKey: fingerprintOf(Buffer.from(key, 'base64')), hostKeyType: type }
}

/** As ssh-keygen -l prints it. */
export function fingerprintOf(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
}
