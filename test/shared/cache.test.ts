import { expect, test } from 'vitest'
import { Cache } from '#shared/cache.ts'

test('a value is there until its time is over', () => {
  const cache = new Cache<string>()
  cache.set('a', 'x', 100)
  expect([cache.get('a', 99), cache.get('a', 100), cache.size]).toEqual(['x', undefined, 0])
})

test('the entry unused for longest makes room', () => {
  const cache = new Cache<number>(2)
  cache.set('a', 1, 100)
  cache.set('b', 2, 100)
  cache.get('a', 0)
  cache.set('c', 3, 100)
  expect([cache.get('a', 0), cache.get('b', 0), cache.get('c', 0)]).toEqual([1, undefined, 3])
})

test('setting a key again replaces value and time', () => {
  const cache = new Cache<number>()
  cache.set('a', 1, 10)
  cache.set('a', 2, 20)
  expect([cache.get('a', 15), cache.size]).toEqual([2, 1])
  cache.delete('a')
  expect(cache.get('a', 0)).toBeUndefined()
})
