// The texts of our mails, in plain text and in simple HTML. Subjects are constants. Text from other people, such as the
// name of a team, appears only in the body, on one line and without links.

type Paragraph = string | { readonly link: string } | { readonly copy: string }

export interface Letter {
  readonly kind:
    'verification' | 'password reset' | 'invitation' | 'signed up again' | 'key expiring' | 'security notice'
  readonly to: string
  readonly subject: string
  readonly body: readonly Paragraph[]
  /** The link that the recipient needs. Without SMTP, it is logged instead. */
  readonly link?: string
}

export function verificationLetter(to: string, link: string): Letter {
  return {
    kind: 'verification',
    to,
    link,
    subject: 'Verify your e-mail address',
    body: [
      'Somebody, hopefully you, signed up to Vitrine with this e-mail address. To verify the address, open this link within an hour and give the password of the sign-up:',
      { link },
      'If it was not you, do nothing: nobody can use this address without the link. If you want an account, sign up or ask for a new password. Both cancel the sign-up of the other person.',
    ],
  }
}

export function resetLetter(to: string, link: string): Letter {
  return {
    kind: 'password reset',
    to,
    link,
    subject: 'Set a new password',
    body: [
      'Somebody, hopefully you, asked for a new password for your Vitrine account. Open this link within an hour to set one:',
      { link },
      'A new password ends all sessions and, unless you keep them, revokes your API keys. If it was not you, do nothing: your password does not change.',
    ],
  }
}

/** For the owner of an address if somebody signs up with it again. */
export function signedUpAgainLetter(to: string, origin: string): Letter {
  return {
    kind: 'signed up again',
    to,
    subject: 'You already have an account',
    body: [
      `Somebody, hopefully you, signed up to Vitrine at ${origin} with this e-mail address, which already has an account.`,
      'If it was you: sign in, or ask for a new password. If it was not you, do nothing: nothing changed.',
    ],
  }
}

export interface Invite {
  readonly to: string
  readonly origin: string
  readonly team: string
  readonly by: string
  readonly role: string
  /** Null for an account that is already a member and only has to open the team. */
  readonly token: string | null
}

export function invitationLetter({ to, origin, team, by, role, token }: Invite): Letter {
  const start = `${plain(by)} invited you to the team “${plain(team)}” in Vitrine, as ${role}.`
  const end = 'If you do not know this person, do nothing.'
  const how =
    token === null
      ? [`Sign in at ${origin} and open the team.`]
      : [
          `Sign in at ${origin} with this e-mail address, or sign up with it, and accept the invitation within 14 days:`,
          { copy: `POST ${origin}/invitations/${token}/accept` },
          'If signing up requires an inviteToken, use this one:',
          { copy: token },
        ]
  return { kind: 'invitation', to, subject: 'You are invited to a team', body: [start, ...how, end] }
}

export interface EndingKey {
  readonly to: string
  readonly origin: string
  readonly name: string
  readonly hint: string
  readonly expiresAt: string
}

export function keyExpiringLetter({ to, origin, name, hint, expiresAt }: EndingKey): Letter {
  return {
    kind: 'key expiring',
    to,
    subject: 'An API key expires soon',
    body: [
      `Your API key “${plain(name)}” (${hint}) at ${origin} expires at ${expiresAt}. Requests with this key are refused from then on.`,
      'If you still need the key, rotate it or create a new one before then.',
    ],
  }
}

export type SecurityChange =
  | { readonly kind: 'new key'; readonly name: string; readonly hint: string }
  | { readonly kind: 'password changed' }
  | { readonly kind: 'password reset' }
  | { readonly kind: 'second factor on' }
  | { readonly kind: 'second factor off' }
  | { readonly kind: 'second factor reset' }
  | { readonly kind: 'backup codes renewed' }
  | { readonly kind: 'passkey added'; readonly name: string }
  | { readonly kind: 'passkey removed'; readonly name: string }
  | { readonly kind: 'provider connected'; readonly name: string }
  | { readonly kind: 'provider disconnected'; readonly name: string }

export interface SecurityNotice {
  readonly to: string
  readonly origin: string
  readonly change: SecurityChange
  readonly at: Date
  readonly client: string | undefined
  readonly address: string | undefined
}

export function securityLetter({ to, origin, change, at, client, address }: SecurityNotice): Letter {
  const { subject, what, otherwise } = NOTICES[change.kind]
  const about = aboutOf(change)
  const program = client === undefined || client === '' ? 'a program without a name' : `the program “${plain(client)}”`
  const place = address === undefined || address === '' ? '' : ` at the address ${plain(address)}`
  const time = `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  return {
    kind: 'security notice',
    to,
    subject,
    body: [
      `${what} Your Vitrine account is at ${origin}.${about}`,
      change.kind === 'second factor reset'
        ? `It happened at ${time}.`
        : `It happened at ${time}, from ${program}${place}.`,
      change.kind === 'second factor reset'
        ? `If you asked for it, you need not do anything. If you did not: ${otherwise}`
        : `If it was you, do nothing. If it was not you: ${otherwise}`,
    ],
  }
}

/** Returns a sentence with the name of the changed object, such as a key. */
function aboutOf(change: SecurityChange): string {
  if (!('name' in change)) return ''
  const hint = 'hint' in change ? ` and ends in ${plain(change.hint)}` : ''
  return ` ${NAMED[change.kind]} is named “${plain(change.name)}”${hint}.`
}

const NAMED: Readonly<Record<Extract<SecurityChange, { readonly name: string }>['kind'], string>> = {
  'new key': 'The key',
  'passkey added': 'The passkey',
  'passkey removed': 'The passkey',
  'provider connected': 'The other service',
  'provider disconnected': 'The other service',
}

const NEW_PASSWORD =
  'immediately ask for a new password, with POST /auth/request-password-reset. A new password ends all sessions. It also revokes all API keys and removes all passkeys and connected accounts, except those that you keep.'
const FACTOR_LEFT = 'If a second factor is on that is not yours, the operator of the service can reset it.'

const NOTICES: Readonly<
  Record<SecurityChange['kind'], { readonly subject: string; readonly what: string; readonly otherwise: string }>
> = {
  'new key': {
    subject: 'A new API key was created',
    what: 'A new API key was created for your account.',
    otherwise: `revoke the key, then ${NEW_PASSWORD}`,
  },
  'password changed': {
    subject: 'Your password was changed',
    what: 'The password of your account was changed.',
    otherwise: NEW_PASSWORD,
  },
  'password reset': {
    subject: 'Your password was reset',
    what: 'A new password was set for your account by a link that was mailed to you.',
    otherwise: `somebody reads your mail. Secure your mailbox first, then ${NEW_PASSWORD}`,
  },
  'second factor on': {
    subject: 'Your second factor was switched on',
    what: 'A second factor was switched on for your account: from now on a sign-in asks for a code.',
    otherwise: `${NEW_PASSWORD} ${FACTOR_LEFT}`,
  },
  'second factor off': {
    subject: 'Your second factor was switched off',
    what: 'The second factor of your account was switched off: from now on the password alone signs in.',
    otherwise: NEW_PASSWORD,
  },
  'second factor reset': {
    subject: 'Your second factor was reset',
    what: 'The operator of the service removed the second factor of your account and ended all your sessions. Set up a new one after you sign in.',
    otherwise: 'find out from the operator who requested the reset, and change your password.',
  },
  'backup codes renewed': {
    subject: 'Your backup codes were replaced',
    what: 'New backup codes were made for the second factor of your account. The old codes no longer work.',
    otherwise: `${NEW_PASSWORD} ${FACTOR_LEFT}`,
  },
  'passkey added': {
    subject: 'A passkey was added',
    what: 'A passkey was added to your account: it signs in without your password.',
    otherwise: NEW_PASSWORD,
  },
  'passkey removed': {
    subject: 'A passkey was removed',
    what: 'A passkey of your account was removed: it no longer signs in.',
    otherwise: NEW_PASSWORD,
  },
  'provider connected': {
    subject: 'Your account was connected',
    what: 'An account at another service was connected to yours: it signs in without your password.',
    otherwise: NEW_PASSWORD,
  },
  'provider disconnected': {
    subject: 'Your account was disconnected',
    what: 'An account at another service was disconnected from yours: it no longer signs in.',
    otherwise: NEW_PASSWORD,
  },
}

export function textOf({ body }: Letter): string {
  const lines = body.map((part) => (typeof part === 'string' ? part : 'link' in part ? part.link : part.copy))
  return `${lines.join('\n\n')}\n`
}

/** The HTML loads nothing from other hosts. */
export function htmlOf({ body }: Letter): string {
  const paragraphs = body.map((part) => {
    if (typeof part === 'string') return `<p>${escaped(part)}</p>`
    if ('copy' in part) return `<pre>${escaped(part.copy)}</pre>`
    return `<p><a href="${escaped(part.link)}">${escaped(part.link)}</a></p>`
  })
  return `<!doctype html><html><body>${paragraphs.join('\n')}</body></html>\n`
}

/** In UTF-16 code units. */
const WORDS_MAX = 80

/** Puts text from other people on one line and removes links, so that nobody can advertise in the name of a team. */
function plain(text: string): string {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').replace(/:\/\/|\bwww\./gi, ' ')
  return line.length <= WORDS_MAX ? line : `${line.slice(0, WORDS_MAX)}…`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
}
