import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LINK, startSmtp, tokenIn } from '../../test/support/mail.ts'
import { auth, openRooms, PASSWORD, sessionOf, someone } from '../../test/support/people.ts'
import { storeSource } from '../../test/support/stores.ts'
import { totp } from '../../test/support/totp.ts'
import { createKey, rotateKey } from './api-keys.ts'
import type { SecurityChange } from '../mail/mail-texts.ts'
import { attempts } from './attempt-counter.ts'
import { openNotices } from './security-mail.ts'

const EMAIL = 'ada@example.test'
const OTHER = 'another long password'

test('a verified address gets limited numbers of mails about a new key, a new password and another second factor', async () => {
  await using source = await storeSource('sqlite')
  await using smtp = await startSmtp()
  await using rooms = await openRooms(source, { SMTP_URL: smtp.url, VITRINE_PUBLIC_URL: 'https://v.example' })
  const headers = { 'user-agent': 'Firefox/140 http://evil.example', 'x-vitrine-client': '192.0.2.9' }
  const ask = (path: string, body: object, cookie = '') => auth(rooms, `POST ${path}`, body, { headers, cookie })
  await ask('sign-up/email', { name: 'Ada', email: EMAIL, password: PASSWORD })
  await ask('verify-email', { token: tokenIn(await smtp.next(EMAIL)), password: PASSWORD })
  const { cookie, json } = await ask('sign-in/email', { email: EMAIL, password: PASSWORD })
  const expectMail = async (what: RegExp) => {
    const mail = await smtp.next(EMAIL, what)
    assert.match(
      mail.text,
      /It happened at \d{4}-\d\d-\d\d \d\d:\d\d UTC, from the program “Firefox\/140 http evil\.example” at the address 192\.0\.2\.9\./,
    )
    assert.match(mail.text, /https:\/\/v\.example/)
    assert.match(mail.text, /If it was not you: /)
    return mail.text
  }
  const begun = await ask('two-factor/enable', { password: PASSWORD }, cookie)
  const on = await ask('two-factor/verify-totp', { code: totp(begun.json.totpURI) }, cookie)
  await expectMail(/second factor was switched on/)
  const [first, second] = begun.json.backupCodes
  const renewed = await ask('two-factor/generate-backup-codes', { password: PASSWORD, code: first }, on.cookie)
  assert.notEqual(second, renewed.json.backupCodes[0])
  await expectMail(/New backup codes/)
  const change = { currentPassword: PASSWORD, newPassword: OTHER }
  const changed = await ask('change-password', change, on.cookie)
  await expectMail(/password of your account was changed/)
  const off = { password: OTHER, code: renewed.json.backupCodes[0] }
  await ask('two-factor/disable', off, changed.cookie)
  await expectMail(/second factor of your account was switched off/)
  await ask('request-password-reset', { email: EMAIL })
  await ask('reset-password', { token: tokenIn(await smtp.next(EMAIL, LINK)), newPassword: PASSWORD })
  await expectMail(/by a link that was mailed to you/)

  const deps = { ...rooms, notices: openNotices({ ...rooms, tries: attempts(rooms.store, rooms.now) }) }
  const call = {
    ...(await sessionOf(rooms, json.user.id)),
    client: 'Firefox/140 http://evil.example',
    address: '192.0.2.9',
  }
  const made = await createKey(deps, call, { name: 'agent', scopes: ['profile'] })
  assert.match(await expectMail(/A new API key/), new RegExp(`The key is named “agent” and ends in ${made.hint}`))
  await rotateKey(deps, call, made.id as never, {})
  await expectMail(/A new API key/)

  const stranger = await someone(rooms, 'unverified@example.test')
  await createKey(deps, stranger, { name: 'k', scopes: ['profile'] })
  // Each kind of change has its own limit.
  rooms.clock.at += 3_600_000
  const before = smtp.received.length
  const tell = (change: SecurityChange) => deps.notices.tell(call.caller.accountId, change, {})
  for (let i = 0; i < 40; i++) await tell({ kind: 'new key', name: 'k', hint: 'h' })
  for (let i = 0; i < 40; i++) await tell({ kind: 'passkey added', name: 'p' })
  await tell({ kind: 'password changed' })
  await smtp.next(EMAIL, /password of your account was changed/)
  // Four mails are sent at the same time, so a few may still be missing when the last one arrives.
  const sent = smtp.received.length - before
  assert.ok(sent > 30 && sent <= 41, `${sent} mails`)
  assert.ok(!smtp.received.some((mail) => mail.to.includes('unverified@example.test')))
})
