import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { readConfig } from '../config.ts'
import { errorForLog } from '../log.ts'
import { startSmtp } from '../../test/support/mail.ts'
import { invitationLetter, resetLetter, verificationLetter, type Letter } from './mail-texts.ts'
import { openMail } from './send-mail.ts'

const SOURCE = 'network 192.0.2.1'
const LINK = 'https://vitrine.example.com/auth/reset-password?token=s3cr3t-token'
const letter = resetLetter('ada@example.test', LINK)

/** `lines` has the log lines that were written so far. */
function post(SMTP_URL: string | undefined, env: Record<string, string> = {}) {
  const lines: string[] = []
  const news = new EventTarget()
  const log = (detail: object, message: string) => {
    lines.push(JSON.stringify({ ...detail, ...('err' in detail && { err: errorForLog(detail.err) }), message }))
    news.dispatchEvent(new Event('line'))
  }
  const config = readConfig({ ...env, ...(SMTP_URL !== undefined && { SMTP_URL }) })
  const mail = openMail({ config, log: { warn: log, error: log } })
  const line = async () => {
    if (lines.length === 0) await once(news, 'line', { signal: AbortSignal.timeout(60_000) })
    return lines[0] ?? ''
  }
  return { mail, lines, line, [Symbol.asyncDispose]: () => mail[Symbol.asyncDispose]() }
}

describe('mail', () => {
  test('a letter is sent as plain text and as HTML that loads nothing', async () => {
    await using smtp = await startSmtp()
    await using at = post(`${smtp.url}?from=vitrine@example.com`)
    at.mail.send(letter, SOURCE)
    const { from, to, headers, text, html } = await smtp.next('ada@example.test')
    assert.deepEqual([from, to], ['vitrine@example.com', ['ada@example.test']])
    assert.match(headers, /^Subject: Set a new password$/m)
    assert.match(headers, /^Auto-Submitted: auto-generated$/m)
    assert.ok(text.includes(`\n${LINK}`) || text.includes(`\r\n${LINK}`))
    assert.match(html, /<a href="https:\/\/vitrine\.example\.com\/auth\/reset-password\?token=s3cr3t-token">/)
    assert.doesNotMatch(html, /<img|<script|src=|<link/)
    assert.deepEqual(at.lines, [])
  })

  test('the sender of a letter is the login, or an address at our own host', async () => {
    await using smtp = await startSmtp({ onAuth: (_auth, _session, done) => done(null, { user: 'x' }) })
    const login = smtp.url.replace('//', '//post%40example.com:pass@')
    await using one = post(login)
    one.mail.send(letter, SOURCE)
    assert.equal((await smtp.next(letter.to)).from, 'post@example.com')
    await using other = post(smtp.url, { VITRINE_PUBLIC_URL: 'https://vitrine.example.com' })
    other.mail.send(letter, SOURCE)
    assert.equal((await smtp.next(letter.to)).from, 'vitrine@vitrine.example.com')
  })

  test('text from other people adds no header, recipient or link to a letter', async () => {
    await using smtp = await startSmtp()
    await using at = post(smtp.url)
    const team = 'Win\r\nBcc: eve@example.test\r\n\r\n<b>https://evil.example www.evil.example</b>\u2028x'
    at.mail.send(
      invitationLetter({
        to: 'bo@example.test',
        origin: 'https://v.example',
        team,
        by: 'a@b.c',
        role: 'ADMIN',
        token: 't',
      }),
      SOURCE,
    )
    const { to, headers, text, html } = await smtp.next('bo@example.test')
    assert.deepEqual(to, ['bo@example.test'])
    assert.doesNotMatch(headers, /^bcc:|evil/im)
    assert.doesNotMatch(text, /:\/\/evil|www\.|^Bcc/m)
    assert.doesNotMatch(html, /<b>|:\/\/evil/)
    const wrong = { ...letter, to: 'a@example.test\r\nRCPT TO:<eve@example.test>, eve@example.test' }
    at.mail.send(wrong, SOURCE)
    await at.line()
    assert.ok(smtp.received.every((mail) => !mail.to.some((address) => address.includes('eve'))))
  })

  test('a letter is sent again after a temporary failure, but not after a permanent one', async () => {
    let asked = 0
    await using smtp = await startSmtp({
      onRcptTo({ address }, _session, done) {
        asked++
        const refusal = Object.assign(new Error(`no ${address} s3cr3t`), {
          responseCode: address.startsWith('bad') ? 550 : 451,
        })
        done(address.startsWith('bad') || asked === 1 ? refusal : null)
      },
    })
    await using at = post(smtp.url)
    at.mail.send(letter, SOURCE)
    await smtp.next(letter.to)
    assert.equal(asked, 2)
    at.mail.send({ ...letter, to: 'bad@example.test' }, SOURCE)
    const line = await at.line()
    assert.equal(asked, 3)
    assert.match(line, /"mail":"password reset".*"tries":1,"command":"RCPT TO","smtpStatus":550/)
    assert.doesNotMatch(line, /example\.test|s3cr3t/)
  })

  test('the password of the mail server is sent to another host only over TLS with a valid certificate, unless tls=none is set', async () => {
    let logins = 0
    const onAuth = (_auth: unknown, _session: unknown, done: (error: null, answer: { user: string }) => void) => {
      logins++
      done(null, { user: 'x' })
    }
    // The server's certificate is not trusted.
    await using smtps = await startSmtp({ secure: true, disabledCommands: [], onAuth })
    await using at = post(`smtps://u:p@127.0.0.1:${smtps.port}`)
    at.mail.send(letter, SOURCE)
    await at.mail[Symbol.asyncDispose]()
    assert.match(await at.line(), /mail: sending failed/)
    assert.deepEqual([logins, smtps.received.length], [0, 0])
    // With smtp:// on loopback, any certificate is accepted. This server accepts logins only after STARTTLS.
    await using local = await startSmtp({ disabledCommands: [], onAuth })
    await using beside = post(`smtp://u:p@127.0.0.1:${local.port}`)
    beside.mail.send(letter, SOURCE)
    await local.next(letter.to)
    assert.equal(logins, 1)
    assert.equal(readConfig({ SMTP_URL: 'smtp://u:p@mail.example.com' }).smtp?.tls, 'required')
    assert.equal(readConfig({ SMTP_URL: 'smtp://mail.example.com' }).smtp?.tls, 'offered')
    assert.equal(readConfig({ SMTP_URL: 'smtp://u:p@mail:25?tls=none' }).smtp?.tls, 'none')
  })

  test('a flood of letters to strangers neither drops nor delays a letter to an account', async () => {
    const stranger = verificationLetter('stranger@example.test', LINK)
    const held = Promise.withResolvers<void>()
    await using smtp = await startSmtp({
      onRcptTo({ address }, _session, done) {
        if (address === stranger.to) void held.promise.then(() => done())
        else done()
      },
    })
    await using at = post(smtp.url)
    for (let i = 0; i < 500; i++) at.mail.send(stranger, SOURCE)
    at.mail.send(letter, SOURCE)
    await smtp.next(letter.to)
    held.resolve()
    assert.equal(at.lines.length, 100, 'one source has 400 letters that wait')
    assert.ok(at.lines.every((line) => line.includes('"mail":"verification"')))
  })

  test('a flood of letters from one source neither drops nor delays a letter from another source', async () => {
    const flood = verificationLetter('flood@example.test', LINK)
    const held = Promise.withResolvers<void>()
    await using smtp = await startSmtp({
      onRcptTo({ address }, _session, done) {
        if (address === flood.to) void held.promise.then(() => done())
        else done()
      },
    })
    await using at = post(smtp.url)
    for (let i = 0; i < 2_500; i++) at.mail.send(flood, SOURCE)
    const other = verificationLetter('new@example.test', LINK)
    at.mail.send(other, 'network 198.51.100.1')
    await smtp.next(other.to)
    held.resolve()
  })

  test('letters that the server refuses for the time being do not delay the letters of other sources', async () => {
    const stranger = (name: string) => verificationLetter(`${name}@example.test`, LINK)
    const busy = Object.assign(new Error('try later'), { responseCode: 450 })
    const refused: string[] = []
    await using smtp = await startSmtp({
      onRcptTo({ address }, _session, done) {
        if (address.startsWith('new')) return done()
        refused.push(address)
        done(busy)
      },
    })
    await using at = post(smtp.url)
    for (let n = 0; n < 10; n++) at.mail.send(stranger(`late${n}`), `network ${n}`)
    at.mail.send(stranger('new'), 'network new')
    await smtp.next('new@example.test')
    assert.equal(new Set(refused).size, 10, 'all were tried')
    assert.ok(refused.length < 20, 'few were tried again')
  })

  test('with a silent server, callers do not wait, two thousand letters are queued, and the service stops in time', async () => {
    const silent = createServer().listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const address = silent.address()
    const at = post(`smtp://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`)
    for (let i = 0; i < 3_000; i++) at.mail.send(letter, `network ${i}`)
    await at.mail[Symbol.asyncDispose]()
    assert.equal(at.lines.length, 1_001)
    assert.match(at.lines.at(-1) ?? '', /"lost":2000/)
    assert.doesNotMatch(at.lines.join('\n'), /example\.test|s3cr3t/)
    silent.close()
  })
})

test('without SMTP_URL, a link is logged once with its recipient, and letters without a link are dropped', async () => {
  await using at = post(undefined)
  const letters: Letter[] = [
    verificationLetter('ada@example.test', LINK),
    invitationLetter({ to: 'a@b.c', origin: '', team: '', by: '', role: 'ADMIN', token: 't' }),
  ]
  for (const each of letters) at.mail.send(each, SOURCE)
  assert.equal(at.mail.isOn, false)
  assert.deepEqual(
    at.lines.map((line) => JSON.parse(line)),
    [
      {
        mail: 'verification',
        to: 'ada@example.test',
        link: LINK,
        message: 'SMTP_URL is not set: pass this link on yourself',
      },
    ],
  )
})
