// What our mails say: short, in plain text and the same as simple HTML. A subject is always a constant of ours; what
// others wrote stands in the text only, on one line and without an address to click on.

/** A line of text, or what is to be clicked or copied. */
type Paragraph = string | { readonly link: string } | { readonly copy: string }

export interface Letter {
  readonly kind:
    'verification' | 'password reset' | 'invitation' | 'signed up again' | 'key expiring' | 'security notice'
  /** One address, as a schema let it pass. */
  readonly to: string
  readonly subject: string
  readonly body: readonly Paragraph[]
  /** What its reader cannot do without: it goes to the log where no mail is sent. */
  readonly link?: string
}

export function verificationLetter(to: string, link: string): Letter {
  return {
    kind: 'verification',
    to,
    link,
    subject: 'Verify your e-mail address',
    body: [
      'Somebody, you we hope, signed up to Vitrine with this e-mail address. To verify the address, open this link within an hour and give the password of the sign-up:',
      { link },
      'If it was not you, do nothing: without the link nobody can use this address. If you want an account, sign up or ask for a new password; either ends what the other person began.',
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
      'Somebody, you we hope, asked for a new password for your Vitrine account. Open this link within an hour to set one:',
      { link },
      'A new password ends all sessions and, unless you keep them, your API keys. If it was not you, do nothing: your password stays as it is.',
    ],
  }
}

/** To whoever owns an address that was signed up with a second time. */
export function signedUpAgainLetter(to: string, origin: string): Letter {
  return {
    kind: 'signed up again',
    to,
    subject: 'You have an account already',
    body: [
      `Somebody, you we hope, signed up to Vitrine at ${origin} with this e-mail address, which has an account already.`,
      'If it was you: sign in, or ask for a new password. If it was not you, do nothing: nothing was changed.',
    ],
  }
}

export interface Invite {
  readonly to: string
  readonly origin: string
  readonly team: string
  /** The address of whoever invites. */
  readonly by: string
  readonly role: string
  /** null for a member already, who only has to open the team. */
  readonly token: string | null
}

export function invitationLetter({ to, origin, team, by, role, token }: Invite): Letter {
  const start = `${plain(by)} invited you to the team “${plain(team)}” in Vitrine, as ${role}.`
  const end = 'If you do not know them, do nothing.'
  const how =
    token === null
      ? [`Sign in at ${origin} and open the team.`]
      : [
          `Sign in at ${origin} with this e-mail address, or sign up with it, and accept the invitation within 14 days:`,
          { copy: `POST ${origin}/invitations/${token}/accept` },
          'Where signing up asks for an inviteToken, it is this:',
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
    subject: 'An API key ends soon',
    body: [
      `Your API key “${plain(name)}” (${hint}) at ${origin} ends at ${expiresAt}. What uses it is refused from then on.`,
      'If it is still needed, rotate it or make another one before.',
    ],
  }
}

/** What was done to an account, as its owner is told at once. */
export type SecurityChange =
  | { readonly kind: 'new key'; readonly name: string; readonly hint: string }
  | { readonly kind: 'password changed' }
  | { readonly kind: 'password reset' }
  | { readonly kind: 'second factor on' }
  | { readonly kind: 'second factor off' }
  | { readonly kind: 'second factor reset' }
  | { readonly kind: 'backup codes renewed' }

export interface SecurityNotice {
  readonly to: string
  readonly origin: string
  readonly change: SecurityChange
  readonly at: Date
  /** What the program says it is. */
  readonly client: string | undefined
  /** Where it is, as far as the service sees. */
  readonly address: string | undefined
}

export function securityLetter({ to, origin, change, at, client, address }: SecurityNotice): Letter {
  const { subject, what, otherwise } = NOTICES[change.kind]
  const key = change.kind === 'new key' ? ` It is named “${plain(change.name)}” and ends in ${plain(change.hint)}.` : ''
  const program =
    client === undefined || client === '' ? 'a program that gives no name' : `the program “${plain(client)}”`
  const place = address === undefined || address === '' ? '' : ` at the address ${plain(address)}`
  const time = `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
  return {
    kind: 'security notice',
    to,
    subject,
    body: [
      `${what} Your Vitrine account is at ${origin}.${key}`,
      change.kind === 'second factor reset'
        ? `It happened at ${time}.`
        : `It happened at ${time}, from ${program}${place}.`,
      change.kind === 'second factor reset'
        ? `If you asked for it, do nothing more. If you did not: ${otherwise}`
        : `If it was you, do nothing. If it was not you: ${otherwise}`,
    ],
  }
}

const NEW_PASSWORD =
  'ask for a new password at once, with POST /auth/request-password-reset. A new password ends all sessions and, unless you keep them, all API keys.'
const FACTOR_LEFT = 'If a second factor is on that is not yours, the operator of the service can reset it.'

const NOTICES: Readonly<
  Record<SecurityChange['kind'], { readonly subject: string; readonly what: string; readonly otherwise: string }>
> = {
  'new key': {
    subject: 'A new API key was made',
    what: 'A new API key was made for your account.',
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
    otherwise: 'ask the operator who wanted it, and change your password.',
  },
  'backup codes renewed': {
    subject: 'Your backup codes were replaced',
    what: 'New backup codes were made for the second factor of your account. The old codes no longer work.',
    otherwise: `${NEW_PASSWORD} ${FACTOR_LEFT}`,
  },
}

/** The letter as text/plain. */
export function textOf({ body }: Letter): string {
  const lines = body.map((each) => (typeof each === 'string' ? each : 'link' in each ? each.link : each.copy))
  return `${lines.join('\n\n')}\n`
}

/** The letter as text/html; nothing in it is loaded from anywhere. */
export function htmlOf({ body }: Letter): string {
  const paragraphs = body.map((each) => {
    if (typeof each === 'string') return `<p>${escaped(each)}</p>`
    if ('copy' in each) return `<pre>${escaped(each.copy)}</pre>`
    return `<p><a href="${escaped(each.link)}">${escaped(each.link)}</a></p>`
  })
  return `<!doctype html><html><body>${paragraphs.join('\n')}</body></html>\n`
}

const WORDS_MAX = 80

/** What somebody else wrote, on one line and as no link: a team's name must not become an advertisement. */
function plain(text: string): string {
  const line = text.replace(/[\p{C}\p{Z}]+/gu, ' ').replace(/:\/\/|\bwww\./gi, ' ')
  return line.length <= WORDS_MAX ? line : `${line.slice(0, WORDS_MAX)}…`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)
}
