// Tests the process as an operator sees it: it prints its address, signals stop it, and errors at the start say what to
// do.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { makeCertificates, type Certificates } from '../support/certificates.ts'
import { environment } from '../support/environment.ts'
import { startPostgres, type TestPostgres } from '../support/postgres.ts'
import { CLI, MAIN } from '../support/program.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

const folders: string[] = []
after(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true, force: true }))))

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'vitrine-process-'))
  folders.push(made)
  return made
}

interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

async function run(file: string, args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const child = spawn(process.execPath, [file, ...args], { env: environment(env) })
  const [out, err] = [collect(child.stdout), collect(child.stderr)]
  const [code] = await once(child, 'close')
  return { code, out: out(), err: err() }
}

function collect(stream: NodeJS.ReadableStream): () => string {
  let text = ''
  // A character may be split between two chunks.
  stream.setEncoding('utf8')
  stream.on('data', (chunk) => (text += String(chunk)))
  return () => text
}

/** Waits until the output of the service matches `ready`. */
async function serve(env: Record<string, string>, ready = /listens at (\S+)/) {
  const child = spawn(process.execPath, [MAIN], { env: environment({ PORT: '0', ...env }) })
  const [out, err] = [collect(child.stdout), collect(child.stderr)]
  while (!ready.test(out())) {
    if (child.exitCode !== null) throw new Error(err())
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')])
  }
  const address = /listens at (\S+)/.exec(out())?.[1] ?? ''
  return {
    address,
    async end(signal: NodeJS.Signals): Promise<Ended> {
      const closed = once(child, 'close')
      child.kill(signal)
      const [code] = await closed
      return { code, out: out(), err: err() }
    },
  }
}

describe('the process', () => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    test(`${signal} stops the process with exit code 0`, async () => {
      const service = await serve({ VITRINE_DATA_DIR: await folder() })
      assert.equal((await fetch(`${service.address}/health/ready`)).status, 200)
      const ended = await service.end(signal)
      assert.deepEqual([ended.code, ended.err], [0, ''])
    })
  }

  test('a second process on the same data folder is refused with a message of one line', async () => {
    const dataDir = await folder()
    const first = await serve({ VITRINE_DATA_DIR: dataDir })
    const second = await run(MAIN, [], { PORT: '0', VITRINE_DATA_DIR: dataDir })
    assert.equal(second.code, 1)
    assert.match(second.err, /^The data folder .* is in use by another Vitrine process.*\n$/)
    assert.equal((await fetch(`${first.address}/health/ready`)).status, 200)
    assert.equal((await first.end('SIGTERM')).code, 0)
  })

  test('if accounts must confirm their mail address, the demo is off, with a message', async () => {
    // No mail is sent, so no server needs to listen on this port.
    const mail = { SMTP_URL: 'smtp://127.0.0.1:1', VITRINE_DEMO: '1' }
    const service = await serve({ VITRINE_DATA_DIR: await folder(), ...mail }, /The demo is off: .*\n/)
    const ended = await service.end('SIGTERM')
    assert.match(ended.out, /\nThe demo is off: .* Start without SMTP_URL to see the demo\.\n/)
    assert.doesNotMatch(ended.out + ended.err, /\n\s+at /)
  })

  test('a port in use is reported with a remedy', async () => {
    const first = await serve({ VITRINE_DATA_DIR: await folder() })
    const { port } = new URL(first.address)
    const second = await run(MAIN, [], { PORT: port, VITRINE_DATA_DIR: await folder() })
    assert.equal(second.code, 1)
    assert.equal(
      second.err,
      `127.0.0.1:${port} is in use by another process. Set PORT to a free port, or stop the other process.\n`,
    )
    await first.end('SIGTERM')
  })

  for (const [host, every, open] of [
    ['0.0.0.0', '0.0.0.0', '127.0.0.1'],
    ['::', '[::]', '[::1]'],
  ] as const) {
    test(`HOST=${host} prints the wildcard address and an address to open`, async () => {
      const service = await serve({ VITRINE_DATA_DIR: await folder(), HOST: host }, /setupToken: \S+\n/)
      const { port } = new URL(service.address)
      assert.equal((await fetch(`http://${open}:${port}/health/ready`)).status, 200)
      const { out } = await service.end('SIGTERM')
      const place = `http://${every}:${port} (every address of this machine; on this machine, open http://${open}:${port})`
      assert.ok(out.startsWith(`Vitrine listens at ${place}\n`), out)
    })
  }

  test('a store without its key is refused, and no file is written', async () => {
    const dataDir = await folder()
    await (await serve({ VITRINE_DATA_DIR: dataDir })).end('SIGTERM')
    const store = await readFile(join(dataDir, 'vitrine.db'))
    const key = await readFile(join(dataDir, 'secret.key'))
    await rm(join(dataDir, 'secret.key'))
    for (let time = 0; time < 2; time++) {
      const refused = await run(MAIN, [], { PORT: '0', VITRINE_DATA_DIR: dataDir })
      assert.equal(refused.code, 1)
      assert.match(refused.err, /^There is a store in .*secret\.key is missing.*Restore the key from your backup.*\n$/)
    }
    const another = await run(MAIN, [], {
      PORT: '0',
      VITRINE_DATA_DIR: dataDir,
      VITRINE_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
    })
    assert.match(another.err, /^This store was written with another VITRINE_SECRET_KEY.*\n$/)
    assert.deepEqual(await readdir(dataDir), ['vitrine.db'])
    assert.deepEqual(await readFile(join(dataDir, 'vitrine.db')), store)
    await writeFile(join(dataDir, 'secret.key'), key)
    assert.equal((await (await serve({ VITRINE_DATA_DIR: dataDir })).end('SIGTERM')).code, 0)
  })

  test('a store that was migrated but never started gets its key at the first start', async () => {
    const dataDir = await folder()
    await run(CLI, ['migrate'], { VITRINE_DATA_DIR: dataDir })
    assert.equal((await (await serve({ VITRINE_DATA_DIR: dataDir })).end('SIGTERM')).code, 0)
  })

  test('all errors of the environment are reported together, without secrets', async () => {
    const ended = await run(MAIN, [], { PORT: 'x', VITRINE_TYPO: '1', VITRINE_SECRET_KEY: 'not-32-bytes' })
    assert.equal(ended.code, 1)
    for (const name of ['PORT', 'VITRINE_TYPO', 'VITRINE_SECRET_KEY']) assert.match(ended.err, new RegExp(name))
    assert.doesNotMatch(ended.err, /not-32-bytes|\n\s+at /)
  })

  test('an account that was created before kill -9 exists afterwards', async () => {
    const dataDir = await folder()
    const first = await serve({ VITRINE_DATA_DIR: dataDir })
    const headers = { 'content-type': 'application/json', origin: first.address }
    const person = { name: 'Ada', email: 'ada@example.test', password: 'a long enough password' }
    const made = await fetch(`${first.address}/auth/sign-up/email`, {
      method: 'POST',
      headers,
      body: JSON.stringify(person),
    })
    assert.equal(made.status, 200)
    await first.end('SIGKILL')

    const second = await serve({ VITRINE_DATA_DIR: dataDir })
    const again = await fetch(`${second.address}/auth/sign-in/email`, {
      method: 'POST',
      headers: { ...headers, origin: second.address },
      body: JSON.stringify({ email: person.email, password: person.password }),
    })
    assert.equal(again.status, 200)
    await second.end('SIGTERM')
  })
})

describe('a start with an unusable data folder or address', () => {
  const cases: readonly [string, (dataDir: string) => Promise<string>, RegExp][] = [
    [
      'below /proc',
      async () => '/proc/nope',
      /^The data folder \/proc\/nope cannot be created by Vitrine\. Create it yourself, or set /,
    ],
    [
      'that is a file',
      async (dataDir) => {
        await writeFile(join(dataDir, 'file'), '')
        return join(dataDir, 'file')
      },
      /^The data folder \S+ is not a folder: a file has this name\./,
    ],
    [
      'with an emptied store',
      async (dataDir) => {
        await writeFile(join(dataDir, 'secret.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`)
        await writeFile(join(dataDir, 'vitrine.db'), '')
        return dataDir
      },
      /^The store \S+ is empty \(0 bytes\), but \S+ shows that it was used before\. Restore /,
    ],
    [
      'with a damaged store',
      async (dataDir) => {
        await writeFile(join(dataDir, 'vitrine.db'), Buffer.alloc(32_768, 7))
        return dataDir
      },
      /^The store \S+ is damaged\. Stop here, copy the data folder, /,
    ],
  ]
  for (const [what, make, message] of cases) {
    test(`a start ${what} prints a message of one line that says what to do`, async () => {
      const dataDir = await make(await folder())
      const ended = await run(MAIN, [], { PORT: '0', VITRINE_DATA_DIR: dataDir })
      assert.equal(ended.code, 1)
      assert.match(ended.err, message)
      assert.equal(ended.err.split('\n').length, 2, ended.err)
    })
  }

  test('a start with a data folder of another user names both users', async (context) => {
    if (process.getuid?.() !== 0) return context.skip('only root can start a process as another user')
    const dataDir = await folder()
    await chmod(dataDir, 0o700)
    // The other user may not be able to read this checkout, so load the program before the change to this user.
    const program = `const { serve } = await import(${JSON.stringify(pathToFileURL(join(ROOT, 'src/serve.ts')).href)})
      process.setuid(65534)
      await serve(process.env)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      env: environment({ VITRINE_DATA_DIR: dataDir, PORT: '0' }),
    })
    const err = collect(child.stderr)
    const [code] = await once(child, 'close')
    assert.equal(code, 1)
    assert.match(
      err(),
      /^The data folder \S+ may not be used by this user \(id 65534\)\. It belongs to the user with the id 0\. Run chown /,
    )
  })

  test('a start on a read-only file system says so, and writes nothing, with or without a store', async (context) => {
    const dataDir = await folder()
    const mount = (...args: readonly string[]) => execFileSync('mount', [...args, dataDir], { stdio: 'pipe' })
    try {
      mount('-t', 'tmpfs', '-o', 'size=24m', 'vitrine-test')
    } catch {
      return context.skip('this user may not mount a small file system')
    }
    try {
      mount('-o', 'remount,ro')
      const empty = await run(MAIN, [], { PORT: '0', VITRINE_DATA_DIR: dataDir })
      assert.equal(empty.code, 1)
      assert.match(empty.err, /^[^\n]* read-only[^\n]*\n$/)
      mount('-o', 'remount,rw')
      await (await serve({ VITRINE_DATA_DIR: dataDir })).end('SIGTERM')
      const before = await readFile(join(dataDir, 'vitrine.db'))
      mount('-o', 'remount,ro')
      const used = await run(MAIN, [], { PORT: '0', VITRINE_DATA_DIR: dataDir })
      assert.equal(used.code, 1)
      assert.match(used.err, /^[^\n]* read-only[^\n]*\n$/)
      assert.deepEqual(await readFile(join(dataDir, 'vitrine.db')), before)
    } finally {
      execFileSync('umount', [dataDir])
    }
  })

  test('if HOST is the address of another machine, the start says so with a remedy', async () => {
    const ended = await run(MAIN, [], { VITRINE_DATA_DIR: await folder(), HOST: '192.0.2.1' })
    assert.equal(ended.code, 1)
    assert.match(
      ended.err,
      /^192\.0\.2\.1\S* is not an address of this machine\. Set HOST to an address of this machine\.\n$/,
    )
  })
})

describe('a start with an unusable DATABASE_URL', () => {
  let server: TestPostgres
  let tls: TestPostgres
  let otherServer: Server
  let certificates: Certificates
  before(async () => {
    certificates = await makeCertificates()
    const file = (name: string) => join(certificates.folder, name)
    server = await startPostgres()
    tls = await startPostgres({
      tls: { certFile: file('server.crt'), keyFile: file('server.key') },
      hba: 'local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256',
    })
    otherServer = createServer((socket) => socket.end('SSH-2.0-Nobody\r\n')).listen(0, '127.0.0.1')
    await once(otherServer, 'listening')
  })
  after(async () => {
    otherServer.close()
    await Promise.all([server, tls, certificates].map((resource) => resource[Symbol.asyncDispose]()))
  })

  const portOf = (listening: Server) => {
    const address = listening.address()
    return typeof address === 'object' && address !== null ? address.port : 0
  }
  const cases: readonly [string, () => string | Promise<string>, RegExp][] = [
    [
      'a wrong password',
      () => server.url('postgres', server.superuser, 'hunter2'),
      /^DATABASE_URL: 127\.0\.0\.1:\d+ refuses the password of the user postgres\. Correct the password; /,
    ],
    [
      'no password',
      () => server.url('postgres').replace(/:[^:@]*@/, '@'),
      /^DATABASE_URL: \S+ requires a password for the user postgres\. Add the password\.\n$/,
    ],
    [
      'a missing database',
      () => server.url('no_such'),
      /^DATABASE_URL: There is no database no_such at \S+\. Create it \(CREATE DATABASE "no_such"\), or correct the name\.\n$/,
    ],
    [
      'a closed port',
      () => 'postgres://u:hunter2@127.0.0.1:1/d',
      /^DATABASE_URL: Nothing listens at 127\.0\.0\.1:1\. Start PostgreSQL there, or correct host and port\.\n$/,
    ],
    [
      'an unknown host',
      () => 'postgres://u:hunter2@no-such-host.invalid/d',
      /^DATABASE_URL: The host name no-such-host\.invalid cannot be resolved\. Correct it, /,
    ],
    [
      'a server without TLS',
      () => `${server.url('postgres')}?sslmode=verify-full`,
      /^DATABASE_URL: \S+ has no TLS, but sslmode requires TLS\. Turn on TLS on the server, /,
    ],
    [
      'a server that requires TLS',
      () => tls.url('postgres'),
      /^DATABASE_URL: \S+ does not admit the user postgres from this machine\. Add \?sslmode=verify-full /,
    ],
    [
      'a certificate of an unknown authority',
      () => `${tls.url('postgres')}?sslmode=verify-full`,
      /^DATABASE_URL: The TLS certificate of \S+ comes from an authority that this machine does not trust\. Add /,
    ],
    [
      'a port with another protocol',
      () => `postgres://u:hunter2@127.0.0.1:${portOf(otherServer)}/d`,
      /^DATABASE_URL: \S+ is not a PostgreSQL server\. Correct host and port\.\n$/,
    ],
    [
      'a user who may not create tables',
      async () => {
        const database = await server.createDatabase('small', 'REVOKE CREATE ON SCHEMA public FROM PUBLIC')
        await server.query(database, "CREATE ROLE small_user LOGIN PASSWORD 'hunter2'")
        return server.url(database, 'small_user', 'hunter2')
      },
      /^DATABASE_URL: The user small_user may not use the database \S+\. Make the user its owner /,
    ],
    [
      'a password with an unescaped slash',
      () => 'postgres://u:12/hunter2@127.0.0.1/d',
      /^DATABASE_URL: the database cannot be reached or rejects the login\. .* Percent-encode special characters in the password\.\n$/,
    ],
    [
      'a password in the database name',
      () => `${server.url('postgres')}&password=hunter2`,
      /^DATABASE_URL: the database cannot be reached or rejects the login\. .* Percent-encode special characters in the password\.\n$/,
    ],
  ]
  for (const [title, url, message] of cases) {
    test(`the error about ${title} says what to do and shows no password`, async () => {
      const key = Buffer.alloc(32, 7).toString('base64')
      const env = { VITRINE_DATA_DIR: await folder(), DATABASE_URL: await url(), VITRINE_SECRET_KEY: key }
      const ended = await run(MAIN, [], { PORT: '0', ...env })
      assert.equal(ended.code, 1)
      assert.match(ended.err, message)
      assert.doesNotMatch(ended.err, /hunter2|\n\s+at /)
      assert.ok(!ended.err.includes(server.password))
    })
  }
})

describe('the command line', () => {
  test('--help lists the commands', async () => {
    const help = await run(CLI, ['--help'])
    assert.equal(help.code, 0)
    for (const verb of ['demo', 'serve', 'migrate', 'openapi']) assert.match(help.out, new RegExp(`^  ${verb} `, 'm'))
  })

  test('--version prints the version of the package', async () => {
    const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8'))
    assert.deepEqual(await run(CLI, ['--version']), { code: 0, out: `${version}\n`, err: '' })
  })

  test('an unknown command or an extra argument is refused with the usage', async () => {
    for (const args of [['serv'], ['openapi', '--yaml']]) {
      const ended = await run(CLI, args)
      assert.equal(ended.code, 2)
      assert.match(ended.err, /Usage: vitrine \[VERB\]/)
    }
  })

  test('openapi prints openapi.json', async () => {
    const { code, out } = await run(CLI, ['openapi'])
    assert.equal(code, 0)
    assert.equal(out, await readFile(join(ROOT, 'openapi.json'), 'utf8'))
  })

  test('the command migrate creates the store, and can run twice', async () => {
    const dataDir = await folder()
    for (let time = 0; time < 2; time++) {
      const { code, out } = await run(CLI, ['migrate'], { VITRINE_DATA_DIR: dataDir })
      assert.deepEqual([code, out], [0, 'The store (sqlite) is migrated to this version of Vitrine.\n'])
    }
  })
})
