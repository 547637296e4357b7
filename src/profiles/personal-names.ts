// Decides whether the name of a column suggests personal data, in several languages and with any way to join words
// (`firstName`, `first_name`). In doubt, the column counts as personal. A person can override the decision.
import type { ValueKind } from '../drivers/driver.ts'

interface Category {
  /** The contents of the column in words for people: "e-mail addresses". */
  readonly what: string
  /** The kinds of values that can be such data. A time, such as email_sent_at, is not an e-mail address. */
  readonly kinds: readonly ValueKind[]
  /** Match only as whole words of the column's name. */
  readonly words: ReadonlySet<string>
  /** Match anywhere in the column's name, after separators are removed. */
  readonly stems: readonly string[]
  /** If true, the rule also applies to names like `phone_type` and `has_phone` (see ABOUT and ASKS). */
  readonly always?: true
}

export const PEOPLE_NAMES = 'names of people'
const TEXTS = ['text', 'other'] as const
const TEXTS_AND_NUMBERS = ['text', 'other', 'number'] as const

const CATEGORIES: readonly Category[] = [
  of('e-mail addresses', TEXTS, 'mail mails email emails courriel correo epost eposta mejl sahkoposti', [
    'email',
    'courriel',
    'почт',
    '邮箱',
    '電子郵件',
    'メール',
    '이메일',
  ]),
  of(
    'telephone numbers',
    TEXTS_AND_NUMBERS,
    'phone phones tel mobile mobil cell handy fax msisdn whatsapp gsm celular puhelin',
    'phone|telefon|telefo|mobilnummer|handynummer|телефон|电话|電話|手机|携帯|전화'.split('|'),
  ),
  of(
    'bank account or card numbers',
    TEXTS_AND_NUMBERS,
    'iban bban konto clabe rib routing sortcode card cards pan cvv cvc carte tarjeta karte',
    'iban|kontonummer|accountnumber|accountno|bankaccount|creditcard|cardnumber|cardno|kreditkarte'.split('|'),
  ),
  {
    ...of(
      'identity numbers',
      TEXTS_AND_NUMBERS,
      'ssn nin nino bsn dni nie nif curp cpf cpr pesel nir nhs aadhaar aadhar personnummer hetu',
      [
        ...'socialsecurity|sozialversicherung|nationalid|nationalnumber|taxid|taxnumber|fiscalid|steuernummer'.split(
          '|',
        ),
        ...'steuerid|codicefiscale|passport|passeport|pasaporte|passaporto|paspoort|reisepass|ausweis'.split('|'),
        ...'driverlicen|driverslicen|drivinglicen|fuhrerschein|identitycard|citizenid|personalid|身份证|паспорт'.split(
          '|',
        ),
      ],
    ),
    always: true,
  },
  of(
    'passwords or other secrets',
    TEXTS_AND_NUMBERS,
    'password passwd pwd pass secret token hash salt pin otp jwt cookie credential credentials senha',
    'passwor|passwort|kennwort|motdepasse|contrasena|пароль|密码'.split('|'),
  ),
  {
    ...of('keys that give access', TEXTS, 'apikey', ['apikey', 'privatekey', 'secretkey', 'accesskey', 'signingkey']),
    always: true,
  },
  {
    ...of(
      'dates of birth',
      ['text', 'other', 'number', 'time'],
      'dob born birthday',
      'birth|geburt|naissance|nacimiento|nascita|nascimento|geboorte|urodzenia|fodels|fodsel|syntym|рождения|生日|生年月日'.split(
        '|',
      ),
    ),
    always: true,
  },
  of(
    PEOPLE_NAMES,
    TEXTS,
    'surname forename nickname nick username login handle author recipient sender apellido apellidos cognome imie nazwisko prenom',
    [
      ...'firstname|lastname|givenname|familyname|middlename|maidenname|fullname|realname|legalname|displayname'.split(
        '|',
      ),
      ...'screenname|username|surname|vorname|nachname|familienname|benutzername|sobrenome|achternaam|voornaam'.split(
        '|',
      ),
      ...'fornamn|efternamn|etunimi|sukunimi|contactname|фамил|отчество|姓名|氏名|이름'.split('|'),
    ],
  ),
  of(
    'postal codes or house numbers',
    TEXTS_AND_NUMBERS,
    'postcode zip zipcode postal plz housenumber hausnummer',
    'postcode|postalcode|zipcode|postleitzahl|codepostal|codigopostal|郵便番号|邮编'.split('|'),
  ),
  of(
    'addresses',
    TEXTS,
    'address addresses addr adres street rue calle straat ulica gata gatan',
    'address|adresse|direccion|indirizzo|endereco|street|strasse|адрес|улица|地址|住所|주소'.split('|'),
  ),
  of(
    'positions of people',
    TEXTS_AND_NUMBERS,
    'lat lng lon latitude longitude geo geohash gps coordinates coords',
    'latitude|longitude|geolocation|breitengrad|langengrad'.split('|'),
  ),
  of(
    'addresses of devices',
    TEXTS_AND_NUMBERS,
    'ip ipv ips imei imsi mac fingerprint',
    'ipaddr|useragent|deviceid|macaddr'.split('|'),
  ),
  of(
    'incomes',
    TEXTS_AND_NUMBERS,
    'salary salaries wage wages payroll gehalt lohn salaire sueldo salario stipendio salaris loon income einkommen',
    'salary|gehalt|salaire|wynagrodzen|зарплат|工资|給与'.split('|'),
  ),
  of(
    'beliefs, origin or health',
    TEXTS,
    'religion ethnicity diagnosis diagnoses diagnose disease disability sexuality',
    'religion|ethnicit|diagnos|disabilit|sexualorientation'.split('|'),
  ),
]

/** These words mean the name of a person if the column or its table is about people: `customer_name`. */
const NAME = new Set('name names nom nombre nome naam namn nimi имя'.split(' '))
const PEOPLE = new Set(
  [
    'customer client user person people employee contact patient member author staff student teacher pupil lead guest',
    'subscriber candidate applicant driver doctor nurse agent owner resident citizen buyer seller player passenger',
    'participant attendee volunteer donor visitor profile manager recipient sender account tenant beneficiary holder',
    'kunde kunden mitarbeiter benutzer nutzer personen patienten mitglied mitglieder cliente empleado usuario persona',
    'utilisateur employe personne dipendente utente impiegato klant medewerker gebruiker pracownik klient uzytkownik',
  ]
    .join(' ')
    .split(' '),
)
/** If the last word is one of these, the column only describes the personal data: phone_type, email_verified. */
const ABOUT = new Set(
  [
    'id ids key fk ref type kind status state count total flag verified confirmed enabled active at on category class',
    'format provider brand network source consent optin optout preference language locale country version valid',
  ]
    .join(' ')
    .split(' '),
)
/** If the first word is one of these, the column answers yes or no: has_email. */
const ASKS = new Set('has have is are can may needs wants allow allows hat ist'.split(' '))

export interface NameReading {
  /** The kind of personal data, in words for people, or null. */
  readonly what: string | null
  /** True if the column is just called "name". It contains names of people if the table is about people. */
  readonly isName: boolean
}

/** Returns true if the name suggests personal data and values of this kind can be such data. */
export function isPersonalName(at: {
  readonly table: string
  readonly column: string
  readonly kind: ValueKind
}): boolean {
  const { what, isName } = readName(at.column, at.kind)
  return what !== null || (isName && isAboutPeople(at.table))
}

/** Reads the name of a column, which may be a dotted path. */
export function readName(column: string, kind: ValueKind): NameReading {
  // The labels of an enum and booleans identify nobody.
  if (kind === 'boolean' || kind === 'label') return NOTHING
  const words = wordsOf(column)
  const joined = words.join('')
  const isAbout = ABOUT.has(words.at(-1) ?? '') || ASKS.has(words[0] ?? '')
  const fits = ({ kinds, words: whole, stems, always }: Category): boolean =>
    kinds.includes(kind) &&
    (always === true || !isAbout) &&
    (words.some((word) => whole.has(word)) || stems.some((stem) => joined.includes(stem)))
  const category = CATEGORIES.find(fits)
  if (category !== undefined) return { what: category.what, isName: false }
  const rest = words.filter((word) => !NAME.has(word))
  const mayBeName = TEXTS.some((each) => each === kind) && !isAbout && rest.length < words.length
  if (!mayBeName) return NOTHING
  return rest.length === 0
    ? { what: null, isName: true }
    : { what: rest.some(isPeople) ? PEOPLE_NAMES : null, isName: false }
}

const NOTHING: NameReading = { what: null, isName: false }

export function isAboutPeople(table: string): boolean {
  return wordsOf(table).some(isPeople)
}

function isPeople(word: string): boolean {
  return PEOPLE.has(word) || (word.endsWith('s') && PEOPLE.has(word.slice(0, -1)))
}

/** In lower case, without accents and digits. A new word begins where the case changes, and after a non-letter. */
function wordsOf(name: string): string[] {
  return name
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .replaceAll('ß', 'ss')
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, '$1 $2')
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .toLowerCase()
    .replaceAll('ø', 'o')
    .replaceAll('ł', 'l')
    .split(/[^\p{L}]+/u)
    .filter((word) => word !== '')
}

function of(what: string, kinds: readonly ValueKind[], words: string, stems: readonly string[]): Category {
  // The stems are normalized like column names. The words must already be in lower case and without accents.
  return { what, kinds, words: new Set(words.split(' ')), stems: stems.map((stem) => wordsOf(stem).join('')) }
}
