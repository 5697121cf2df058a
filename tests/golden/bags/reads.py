"""Prints 640 articles that were shown as CSV: whether they were read, a user, the article's tags with
their relevance, topics with how long the user has read of each, tags that the user likes, which have
no weights, and the article's length."""
import random

draw = random.Random(21)


def bag(names, most):
    return [draw.choice(names) for _ in range(draw.randrange(most + 1))]


TAGS = [f"tag{i}" for i in range(25)]
TOPICS = [f"topic{i}" for i in range(12)]
print("relevance,read,user,tags,topics,seconds,likes,length")
for _ in range(640):
    user, tags, topics, likes = draw.randrange(40), bag(TAGS, 6), bag(TOPICS, 4), bag(TAGS, 3)
    relevance = [round(draw.uniform(-0.3, 1.5), 3) for _ in tags]
    seconds = [draw.choice((0, 0, 5, 12.5, 90)) for _ in topics]
    liking = sum(r for tag, r in zip(tags, relevance) if tag in likes or int(tag[3:]) % 3 == user % 3)
    read = int(liking + 0.01 * sum(seconds) + draw.gauss(0, 0.5) > 0.8)
    print(*("|".join(map(str, field)) for field in
            (relevance, [read], [f"u{user}"], tags, topics, seconds, likes,
             [round(draw.random(), 3)])), sep=",")
