// Certificates for tests of TLS: two authorities, a server certificate for `localhost` and the names that a test adds,
// and a client certificate.
import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificates extends AsyncDisposable {
  readonly folder: string
  /** In PEM. The keys are ca.crt, other.crt, server.crt, server.key, ann.crt and ann.key. */
  readonly pem: Readonly<Record<string, string>>
}

/**
 * Creates the certificates with openssl, in a folder that is removed when the result is disposed. The client's subject
 * is CN=ann,O=people.
 */
export async function makeCertificates(): Promise<Certificates> {
  const folder = await mkdtemp(join(tmpdir(), 'vitrine-ca-'))
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' })
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  for (const ca of ['ca', 'other'])
    openssl('req', '-x509', ...ec, '-keyout', `${ca}.key`, '-out', `${ca}.crt`, '-days', '2', '-subj', `/CN=${ca}`)
  await writeFile(
    join(folder, 'server.ext'),
    'subjectAltName=DNS:localhost,DNS:agent.example,DNS:accounts.google.com\n',
  )
  await writeFile(join(folder, 'ann.ext'), 'extendedKeyUsage=clientAuth\n')
  for (const [name, subject] of [
    ['server', '/O=servers/CN=localhost'],
    ['ann', '/O=people/CN=ann'],
  ] as const) {
    openssl('req', ...ec, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
    const signed = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', `${name}.ext`]
    openssl('x509', '-req', '-in', `${name}.csr`, '-out', `${name}.crt`, ...signed)
  }
  const names = ['ca.crt', 'other.crt', 'server.crt', 'server.key', 'ann.crt', 'ann.key']
  const files = names.map(async (name) => [name, await readFile(join(folder, name), 'utf8')] as const)
  return {
    folder,
    pem: Object.fromEntries(await Promise.all(files)),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
