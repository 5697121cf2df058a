"""Prints 640 views of videos as CSV: their rating from 0.5 to 5, whether they were watched to the end
(not known of one in five), how much they count, a user, a video and its length."""
import random

draw = random.Random(12)
print("rating,finished,weight,user,video,length")
for _ in range(640):
    user, video, length = draw.randrange(40), int(30 * draw.random() ** 2), draw.random()
    liking = (user % 3 == video % 3) + draw.gauss(0, 0.4)
    rating = min(5, max(0.5, round(2 * (2.5 + 1.5 * liking)) / 2))
    finished = "" if draw.random() < 0.2 else int(liking - length > 0)
    print(f"{rating},{finished},{draw.choice((0.5, 1, 2))},u{user},v{video},{length:.3f}")
