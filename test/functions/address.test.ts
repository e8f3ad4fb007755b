import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { inRange, parseAddress, parseRange } from '#functions/address.ts'

describe('inRange', () => {
  test.each([
    ['203.0.113.9', '203.0.113.0/24', true],
    ['203.0.114.9', '203.0.113.0/24', false],
    ['203.0.113.9', '203.0.113.9/32', true],
    ['203.0.113.8', '203.0.113.9/32', false],
    ['198.51.100.1', '0.0.0.0/0', true],
    ['10.127.255.255', '10.64.0.0/10', true],
    ['10.128.0.0', '10.64.0.0/10', false],
    ['2001:db8:1::7', '2001:db8::/32', true],
    ['2001:db9::7', '2001:db8::/32', false],
    ['::1', '::1/128', true],
    ['::1', '::/0', true],
    ['::1', '0.0.0.0/0', false],
    ['127.0.0.1', '::/0', false],
    ['::ffff:203.0.113.9', '203.0.113.0/24', true],
    ['::ffff:cb00:7109', '203.0.113.0/24', true],
    ['203.0.113.9', '::ffff:203.0.113.0/120', true],
  ])('%s in %s: %s', (address, range, expected) => {
    expect(inRange(parseAddress(address)!, parseRange(range)!)).toBe(expected)
  })
})

describe('parseAddress', () => {
  test.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '01.2.3.4',
    '1.2.3.4 ',
    '0x1.2.3.4',
    '1.2.3.-4',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8:9',
    'g::',
    '12345::',
    'fe80::1%eth0',
    '1.2.3.4::',
    '[::1]',
    '::1.2.3.4.5',
    '1:2:3:4:5:6:7:1.2.3.4',
  ])('refuses %j', (text) => {
    expect(parseAddress(text)).toBeUndefined()
  })

  test('reads every spelling of the same address alike', () => {
    const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 })
    fc.assert(
      fc.property(groups, fc.nat(7), fc.nat(8), (numbers, from, length) => {
        const zeroed = numbers.map((n, i) => (i >= from && i < from + length + 1 ? 0 : n))
        const full = zeroed.map((n) => n.toString(16))
        const rest = full.slice(from + length + 1)
        const short = `${full.slice(0, from).join(':')}::${rest.join(':')}`
        expect(parseAddress(short)).toEqual(parseAddress(full.join(':')))
        expect(parseAddress(short.toUpperCase())).toEqual(parseAddress(full.join(':')))
      }),
    )
  })

  test('never throws', () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9a-f:./]{0,40}$/))
    fc.assert(
      fc.property(text, (input) => {
        parseAddress(input)
        parseRange(input)
      }),
    )
  })
})

describe('parseRange', () => {
  test.each([
    '10.0.0.0',
    '10.0.0.0/',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '10.0.0.0/-1',
    '10.0.0.0/8/8',
    '10.0.0.1/8',
    '::1/127',
    '::/129',
    '/8',
    '::ffff:10.0.0.0/95',
  ])('refuses %j', (text) => {
    expect(parseRange(text)).toBeUndefined()
  })
})
