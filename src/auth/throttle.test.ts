// How often whom may try: strangers are slowed down wherever they come from, and cannot keep the owner out.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { secretsFrom } from '../secrets.ts'
import { knownDevices } from './known-device.ts'
import { networkOf, openThrottle } from './throttle.ts'

const EMAIL = 'ada@example.test'
const devices = knownDevices(secretsFrom(new Uint8Array(32)), false)

const request = (address: string, cookie?: string) =>
  new Request('http://127.0.0.1:3000/auth/sign-in/email', {
    method: 'POST',
    headers: { 'x-vitrine-client': address, ...(cookie === undefined ? {} : { cookie }) },
  })

function opened() {
  const clock = { at: 0 }
  const throttle = openThrottle(() => clock.at, devices)
  const signIn = (address: string, cookie?: string, email = EMAIL) => {
    try {
      const settle = throttle({
        name: 'POST /auth/sign-in/email',
        request: request(address, cookie),
        email,
        mailIsOn: false,
      })
      return { told: 'tried', settle }
    } catch (error) {
      return { told: error instanceof Error && 'code' in error ? String(error.code) : '?', settle: () => undefined }
    }
  }
  return { clock, signIn }
}

describe('guesses at one account', () => {
  test('from everywhere end after a hundred an hour; a browser that knew the password goes on', () => {
    const { signIn, clock } = opened()
    const cookie = devices.cookie(EMAIL).split(';', 1)[0]
    const told = Array.from({ length: 101 }, (_, i) => signIn(`10.0.${i}.1`).told)
    assert.deepEqual([told.at(99), told.at(100)], ['tried', 'RATE_LIMITED'])
    assert.equal(signIn('192.0.2.1', cookie).told, 'tried')
    for (let i = 1; i < 10; i++) signIn('192.0.2.1', cookie)
    assert.equal(signIn('192.0.2.2', cookie).told, 'RATE_LIMITED', 'a stolen cookie guesses without end')
    clock.at += 300_000
    signIn('192.0.2.1', cookie).settle()
    assert.equal(signIn('10.0.0.1').told, 'RATE_LIMITED', 'what a device knew gave strangers their tries back')
  })

  test('a cookie of another account, or of nobody’s making, is a stranger’s', () => {
    const { signIn } = opened()
    for (let i = 0; i < 100; i++) signIn(`10.0.${i}.1`)
    const [name = '', value = ''] = (devices.cookie(EMAIL).split(';', 1)[0] ?? '').split('=')
    const others = devices.cookie('eve@example.test').split(';', 1)[0]
    const foreign = knownDevices(secretsFrom(new Uint8Array(32).fill(1)), false)
      .cookie(EMAIL)
      .split(';', 1)[0]
    const flipped = `${name}=${value.startsWith('A') ? 'B' : 'A'}${value.slice(1)}`
    for (const cookie of [others, foreign, flipped, `${name}=`, `${name}=x.y`]) {
      assert.equal(signIn('192.0.2.1', cookie).told, 'RATE_LIMITED', cookie)
    }
  })

  test('a right password from one address gives that address its tries back', () => {
    const { signIn } = opened()
    for (let i = 0; i < 9; i++) signIn('192.0.2.1')
    signIn('192.0.2.1').settle()
    assert.equal(signIn('192.0.2.1').told, 'tried')
  })
})

test('the addresses of one customer of IPv6 count as one, however they are written', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:0DB8:0001:0002::1', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
    ['::1', '0:0:0:0'],
    ['::', '0:0:0:0'],
    ['', ''],
  ] as const) {
    assert.equal(networkOf(address), network, address)
  }
})
