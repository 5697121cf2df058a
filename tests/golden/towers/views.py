"""Prints 640 views as CSV, all of them positive: a user, an item, which is often one of a few, its
genre, which users of the same genre view, and the hour."""
import random

draw = random.Random(5)
print("view,user,item,genre,hour")
for _ in range(640):
    user = draw.randrange(40)
    item = 5 * int(8 * draw.random() ** 2) + (user if draw.random() < 0.8 else draw.randrange(5)) % 5
    print(f"1,u{user},i{item},g{item % 5},{draw.random():.3f}")
