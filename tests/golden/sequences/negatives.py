"""The negatives that Renzan draws (renzan/data/sampled_negatives.h), computed apart from it."""
import numpy as np

MASK = (1 << 64) - 1
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
          0x27D4EB2F165667C5)


def xxh64(data):
    """XXH64 with seed 0 of fewer than 32 bytes."""
    assert len(data) < 32
    p1, p2, p3, p4, p5 = PRIMES
    rotate = lambda x, bits: ((x << bits) | (x >> (64 - bits))) & MASK
    h = (p5 + len(data)) & MASK
    while len(data) >= 8:
        lane = rotate(int.from_bytes(data[:8], "little") * p2 & MASK, 31) * p1 & MASK
        h, data = (rotate(h ^ lane, 27) * p1 + p4) & MASK, data[8:]
    if len(data) >= 4:
        lane = int.from_bytes(data[:4], "little") * p1 & MASK
        h, data = (rotate(h ^ lane, 23) * p2 + p3) & MASK, data[4:]
    for byte in data:
        h = rotate(h ^ (byte * p5 & MASK), 11) * p1 & MASK
    for shift, factor in (33, p2), (29, p3), (32, 1):
        h = (h ^ (h >> shift)) * factor & MASK
    return h


def philox(key, low, high):
    """Philox4x32-10: four words."""
    half = 0xFFFFFFFF
    c, k0, k1 = [low & half, low >> 32, high & half, high >> 32], key & half, key >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k0, p1 & half, (p0 >> 32) ^ c[3] ^ k1, p0 & half]
        k0, k1 = (k0 + 0x9E3779B9) & half, (k1 + 0xBB67AE85) & half
    return c


def draw_negatives(seed, feature, count, step, own, first_id, end_id):
    """[samples, count]: ids in [first_id, end_id) other than each sample's own."""
    words = philox(seed, xxh64(f"negatives/{feature}".encode()), 0)
    key = words[0] << 32 | words[1]
    negatives = np.zeros((len(own), count), dtype=np.int64)
    for sample, id in enumerate(own):
        left_out = first_id <= id < end_id
        for k in range(count):
            words = philox(key, sample << 32 | k // 2, step)[2 * (k % 2):]
            drawn = first_id + ((words[0] << 32 | words[1]) * (end_id - first_id - left_out) >> 64)
            negatives[sample, k] = drawn + (left_out and drawn >= id)
    return negatives
