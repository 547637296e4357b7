import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readConfig } from './config.ts'

const key = Buffer.alloc(32, 7).toString('base64')

describe('the environment', () => {
  test('with an empty environment, the config has the defaults for a newcomer', () => {
    const config = readConfig({})
    assert.equal(config.port, 3000)
    assert.equal(config.host, '127.0.0.1')
    assert.match(config.dataDir, /\/data$/)
    assert.deepEqual(
      [config.loopback, config.signup, config.allowPrivateHosts, config.demo, config.trustProxy],
      [true, 'open', true, false, false],
    )
    assert.deepEqual(
      [config.publicUrl, config.databaseUrl, config.secretKey, config.metricsAddr],
      [null, null, null, null],
    )
    assert.deepEqual(config.ceilings, {})
    assert.deepEqual([config.allowApplicationDefault, config.allowBigQueryEndpoint], [false, false])
  })

  test('a newcomer’s start on loopback runs the demo, unless it is configured otherwise', () => {
    const demo = true
    const own = { DATABASE_URL: 'postgres://u:p@h/d', VITRINE_SECRET_KEY: Buffer.alloc(32, 7).toString('base64') }
    assert.equal(readConfig({}, { demo }).demo, true)
    assert.equal(readConfig({}).demo, false)
    assert.equal(readConfig({ npm_lifecycle_event: 'start' }).demo, false)
    assert.equal(readConfig({ VITRINE_DEMO: '0' }, { demo }).demo, false)
    assert.equal(readConfig({ HOST: '0.0.0.0' }, { demo }).demo, false)
    assert.equal(readConfig(own, { demo }).demo, false)
    assert.equal(readConfig({ HOST: '0.0.0.0', VITRINE_DEMO: '1' }).demo, true)
  })

  test('the defaults are strict if others can reach the service', () => {
    for (const HOST of ['0.0.0.0', '10.0.0.1', '::', 'vitrine.example.com', '127.evil.example']) {
      const { signup, allowPrivateHosts } = readConfig({ HOST })
      assert.deepEqual([HOST, signup, allowPrivateHosts], [HOST, 'invited', false])
    }
    for (const HOST of ['127.0.0.1', '127.1.2.3', 'localhost', '::1']) assert.equal(readConfig({ HOST }).signup, 'open')
  })

  test('every variable is parsed into its setting', () => {
    const config = readConfig({
      PORT: '0',
      DATABASE_URL: 'postgresql://u:p@db/vitrine',
      VITRINE_SECRET_KEY: key,
      VITRINE_PUBLIC_URL: 'https://vitrine.example.com/',
      VITRINE_SIGNUP: 'closed',
      VITRINE_ALLOW_PRIVATE_HOSTS: '0',
      VITRINE_ALLOW_APPLICATION_DEFAULT: '1',
      VITRINE_ALLOW_BIGQUERY_ENDPOINT: '1',
      VITRINE_TRUST_PROXY: '10.0.0.0/8, loopback',
      VITRINE_METRICS_ADDR: '127.0.0.1:9090',
      VITRINE_MAX_ROW_CAP: '500',
      VITRINE_MAX_STATEMENT_TIMEOUT_MS: '5000',
      LOG_LEVEL: 'warn',
    })
    assert.equal(config.publicUrl, 'https://vitrine.example.com')
    assert.deepEqual([config.allowApplicationDefault, config.allowBigQueryEndpoint], [true, true])
    assert.equal(config.secretKey?.length, 32)
    assert.deepEqual(config.ceilings, { rowCap: 500, statementTimeoutMs: 5000 })
    assert.equal(config.trustProxy, '10.0.0.0/8,loopback')
    assert.equal(config.metricsAddr, '127.0.0.1:9090')
  })

  test('one error lists all wrong variables and contains no secret', () => {
    const wrong = {
      PORT: '70000',
      DATABASE_URL: 'mysql://root:hunter2@db',
      VITRINE_SECRET_KEY: 'hunter2',
      VITRINE_PUBLIC_URL: 'https://vitrine.example.com/app',
      VITRINE_DEMO: 'yes',
      VITRINE_SIGNUP: 'opne',
      VITRINE_TRUST_PROXY: '10.0.0.0/33',
      VITRINE_METRICS_ADDR: '9090',
      VITRINE_MAX_ROW_CAP: '-1',
      VITRINE_SIGNPU: 'closed',
      SMTP_URL: 'smtp://root:hunter2@mail?tls.rejectUnauthorized=false',
      VITRINE_MODEL_URL: 'https://hunter2@models.example/v1?key=hunter2',
      VITRINE_MODEL_KEY: 'hunter2\u00e9',
      VITRINE_MODEL_NAME: 'a model',
      LOG_LEVEL: 'loud',
    }
    assert.throws(
      () => readConfig(wrong),
      (error: Error) => {
        for (const name of Object.keys(wrong)) assert.match(error.message, new RegExp(`^  ${name}: `, 'm'), name)
        assert.ok(!error.message.includes('hunter2'))
        return true
      },
    )
  })

  test('settings that contradict each other are refused', () => {
    const key = Buffer.alloc(32, 7).toString('base64')
    for (const [env, message] of [
      [{ VITRINE_METRICS_ADDR: '127.0.0.1:3000' }, /^ {2}VITRINE_METRICS_ADDR: is the address of the API/m],
      [{ VITRINE_HEALTH_ADDR: '0.0.0.0:8080', PORT: '8080' }, /^ {2}VITRINE_HEALTH_ADDR: is the address of the API/m],
      [
        { VITRINE_HEALTH_ADDR: '127.0.0.1:8080', HOST: '::', PORT: '8080' },
        /^ {2}VITRINE_HEALTH_ADDR: is the address of the API/m,
      ],
      [
        { VITRINE_SECRET_KEY: key, VITRINE_SECRET_KEY_PREVIOUS: key },
        /^ {2}VITRINE_SECRET_KEY_PREVIOUS: equals VITRINE_SECRET_KEY/m,
      ],
      [
        { VITRINE_SECRET_KEY: key, VITRINE_SECRET_KEY_COMMAND: 'print it' },
        /^ {2}VITRINE_SECRET_KEY_COMMAND: contradicts VITRINE_SECRET_KEY/m,
      ],
    ] as const) {
      assert.throws(() => readConfig(env), message)
    }
    const { healthAddr } = readConfig({ VITRINE_HEALTH_ADDR: '127.0.0.1:3000', HOST: '10.0.0.1' })
    assert.equal(healthAddr, '127.0.0.1:3000', 'another address of the machine may have the same port')
    readConfig({ PORT: '0', VITRINE_METRICS_ADDR: '127.0.0.1:0', VITRINE_HEALTH_ADDR: '127.0.0.1:0' })
  })

  test('a DATABASE_URL without slashes is refused, because login and password would be the database name', () => {
    const key = Buffer.alloc(32).toString('base64')
    for (const url of ['postgres:root:hunter2@db/v', 'postgres:/root:hunter2@db/v', 'postgres:\\\\root:hunter2@db/v']) {
      assert.throws(
        () => readConfig({ DATABASE_URL: url, VITRINE_SECRET_KEY: key }),
        /DATABASE_URL: must have two slashes/,
      )
    }
  })

  test('DATABASE_URL requires VITRINE_SECRET_KEY', () => {
    assert.throws(
      () => readConfig({ DATABASE_URL: 'postgres://db/v' }),
      /VITRINE_SECRET_KEY: required with DATABASE_URL/,
    )
  })

  test('an empty variable counts as unset', () => {
    assert.equal(readConfig({ VITRINE_SIGNUP: '', PORT: ' ' }).port, 3000)
  })

  describe('with a language model', () => {
    const model = (url: string, more: object = { VITRINE_MODEL_KEY: 'k' }) =>
      readConfig({ VITRINE_MODEL_URL: url, VITRINE_MODEL_NAME: 'm', ...more }).model

    test('the API of the language model is recognized by its URL', () => {
      assert.deepEqual(model('https://api.openai.com/v1/'), {
        kind: 'openai',
        url: 'https://api.openai.com/v1',
        key: 'k',
        name: 'm',
      })
      assert.equal(model('https://api.anthropic.com')?.kind, 'anthropic')
      assert.equal(model('https://proxy.example/anthropic/v1')?.kind, 'anthropic')
      assert.equal(model('https://notanthropic.com/v1')?.kind, 'openai')
      assert.equal(readConfig({}).model, null)
    })

    test('the key of the language model is sent to another machine only over https', () => {
      assert.throws(() => model('http://models.example/v1'), /VITRINE_MODEL_URL: must be https/)
      assert.equal(model('http://models.example/v1', {})?.key, null)
      assert.equal(model('http://[::1]:11434/v1')?.url, 'http://[::1]:11434/v1')
    })

    test('a language model needs its URL and its name, or none of its variables', () => {
      assert.throws(() => readConfig({ VITRINE_MODEL_KEY: 'k' }), /VITRINE_MODEL_URL: required/)
      assert.throws(() => readConfig({ VITRINE_MODEL_NAME: 'm' }), /VITRINE_MODEL_URL: required/)
      assert.throws(() => readConfig({ VITRINE_MODEL_URL: 'https://a.example' }), /VITRINE_MODEL_NAME: required/)
    })
  })

  describe('with sign-in providers', () => {
    const both = (name: string) => ({
      [`VITRINE_${name}_CLIENT_ID`]: 'id',
      [`VITRINE_${name}_CLIENT_SECRET`]: 'hunter2',
    })
    const issuer = { VITRINE_OIDC_ISSUER: 'https://id.example/realms/a/' }
    const problem = (env: Record<string, string>): string => {
      try {
        readConfig(env)
        return ''
      } catch (error) {
        return error instanceof Error ? error.message : ''
      }
    }

    test('each sign-in provider is read, and its issuer stays as it is written', () => {
      const env = { ...both('GITHUB'), ...both('GOOGLE'), ...both('OIDC'), ...issuer, VITRINE_OIDC_NAME: 'Acme' }
      const { providers } = readConfig(env)
      assert.deepEqual(
        providers.map(({ id, name, issuer }) => [id, name, issuer]),
        [
          ['github', 'GitHub', 'https://github.com'],
          ['google', 'Google', 'https://accounts.google.com'],
          ['oidc', 'Acme', 'https://id.example/realms/a/'],
        ],
      )
      assert.deepEqual(readConfig({}).providers, [])
      const own = readConfig({ ...both('GITHUB'), VITRINE_GITHUB_URL: 'https://git.example/' }).providers
      assert.equal(own[0]?.issuer, 'https://git.example')
    })

    test('an incomplete sign-in provider is refused, and the error names the missing variable', () => {
      for (const [env, missing] of [
        [{ VITRINE_GITHUB_CLIENT_ID: 'id' }, 'VITRINE_GITHUB_CLIENT_SECRET: required with VITRINE_GITHUB_CLIENT_ID'],
        [{ VITRINE_GOOGLE_CLIENT_SECRET: 'hunter2' }, 'VITRINE_GOOGLE_CLIENT_ID: required with'],
        [{ VITRINE_GITHUB_URL: 'https://git.example' }, 'VITRINE_GITHUB_CLIENT_ID: required with VITRINE_GITHUB_URL'],
        [both('OIDC'), 'VITRINE_OIDC_ISSUER: required with VITRINE_OIDC_CLIENT_ID'],
        [issuer, 'VITRINE_OIDC_CLIENT_SECRET: required with VITRINE_OIDC_ISSUER'],
        [{ VITRINE_OIDC_NAME: 'Acme' }, 'VITRINE_OIDC_CLIENT_ID: required with VITRINE_OIDC_NAME'],
        [{ HOST: '0.0.0.0', ...both('GITHUB') }, 'VITRINE_PUBLIC_URL: required with VITRINE_GITHUB_CLIENT_ID'],
      ] as const) {
        const said = problem(env)
        assert.ok(said.includes(`  ${missing}`), said)
        assert.ok(!said.includes('hunter2'))
      }
      assert.equal(problem({ HOST: '0.0.0.0', VITRINE_PUBLIC_URL: 'https://a.example', ...both('GITHUB') }), '')
    })

    test('an issuer must have HTTPS or be on this machine', () => {
      const at = (VITRINE_OIDC_ISSUER: string) => problem({ ...both('OIDC'), VITRINE_OIDC_ISSUER })
      for (const url of ['https://id.example', 'http://127.0.0.1:8080/a', 'http://[::1]:1/', 'http://localhost/']) {
        assert.equal(at(url), '', url)
      }
      for (const url of ['http://id.example', 'id.example', 'https://a:b@id.example', 'https://id.example/?a=b']) {
        assert.match(at(url), /VITRINE_OIDC_ISSUER: must be/, url)
      }
    })
  })

  test('the error about DATABASE_URL says what is wrong, but does not contain the password', () => {
    const problemOf = (DATABASE_URL: string): string => {
      try {
        readConfig({ DATABASE_URL, VITRINE_SECRET_KEY: key })
        return ''
      } catch (error) {
        return error instanceof Error ? error.message : ''
      }
    }
    const cases: readonly [string, RegExp][] = [
      ['mysql://u:hunter2@h/d', /must begin with postgres:\/\/, not mysql:\/\//],
      ['h:5432/d', /must begin with postgres:\/\/, as in/],
      ['postgres:u:hunter2@h/d', /must have two slashes/],
      ['postgres://u:hunter2@h:99999/d', /has a port that is not a number/],
      ['postgres://u:hunter2@', /has no host after the @/],
      ['postgres://u:hun#ter2@h/d', /percent-encode/i],
      ['postgres://u:%zz@[h/d', /Percent-encode|cannot be read/],
    ]
    for (const [url, message] of cases) {
      const problem = problemOf(url)
      assert.match(problem, message, url)
      assert.doesNotMatch(problem, /hunter2|ter2|%zz/)
    }
    for (const url of [
      'postgres://u:p@h/d',
      'postgresql://h',
      'postgres:///d',
      'postgres://u:p@[::1]:5432/d?sslmode=require',
    ])
      assert.equal(problemOf(url), '')
  })

  test('a variable whose name resembles that of a setting is refused', () => {
    assert.throws(
      () => readConfig({ vitrine_port: '1' }),
      /vitrine_port: unknown setting\. Names are in capitals\. Did you mean PORT\?/,
    )
    assert.throws(() => readConfig({ SMTPURL: 'smtp://x' }), /SMTPURL: unknown setting\. Did you mean SMTP_URL\?/)
    assert.throws(() => readConfig({ database_url: 'x' }), /Did you mean DATABASE_URL\?/)
    assert.throws(() => readConfig({ VITRINE_METRICSADDR: 'x' }), /Did you mean VITRINE_METRICS_ADDR\?/)
    readConfig({ SMTP_URL: 'smtp://127.0.0.1', smtp_url: 'other' })
  })
})
